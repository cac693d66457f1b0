/* pictures.h: PNG and JPEG files for tests, written by the libraries themselves. */
#ifndef SHOAL_TESTS_DATA_PICTURES_H
#define SHOAL_TESTS_DATA_PICTURES_H

#include "files.h"

#include <png.h>

#include <jpeglib.h>

typedef struct png_case {
  uint32_t w, h;
  int type, depth;              /* PNG_COLOR_TYPE_..., bits */
  const png_color *palette;     /* or NULL */
  const uint8_t *palette_alpha; /* of the first colours; or NULL */
  int colours, alphas;
  const png_color_16 *clear; /* the transparent colour; or NULL */
  bool interlaced;
} png_case;

/* rows: h rows of w pixels as the type and depth have them, of whole bytes. */
static inline void put_png(const char *path, const png_case *about, const uint8_t *rows) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
  png_infop info = png_create_info_struct(png);
  png_init_io(png, file);
  png_set_IHDR(png, info, about->w, about->h, about->depth, about->type,
               about->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (about->palette) png_set_PLTE(png, info, about->palette, about->colours);
  if (about->palette_alpha || about->clear)
    png_set_tRNS(png, info, about->palette_alpha, about->alphas, about->clear);
  png_write_info(png, info);
  size_t row_bytes = png_get_rowbytes(png, info);
  png_bytep *pointers = calloc(about->h, sizeof *pointers);
  for (uint32_t y = 0; y < about->h; y++) pointers[y] = (png_bytep)rows + y * row_bytes;
  png_write_image(png, pointers);
  png_write_end(png, info);
  free(pointers);
  png_destroy_write_struct(&png, &info);
  assert_int_equal(fclose(file), 0);
}

/* 8 bits, grey or colours. */
static inline void put_plain_png(const char *path, uint32_t w, uint32_t h, uint32_t c, const uint8_t *rows) {
  const png_case about = {
      .w = w, .h = h, .type = c == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, .depth = 8};
  put_png(path, &about, rows);
}

static inline void put_jpeg(const char *path, uint32_t w, uint32_t h, int c, bool progressive,
                            const uint8_t *rows) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  struct jpeg_compress_struct jpeg;
  struct jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  jpeg_stdio_dest(&jpeg, file);
  jpeg.image_width = w;
  jpeg.image_height = h;
  jpeg.input_components = c;
  jpeg.in_color_space = c == 1 ? JCS_GRAYSCALE : c == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 95, TRUE);
  if (progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < h) {
    JSAMPROW row = (JSAMPROW)rows + (size_t)jpeg.next_scanline * w * (size_t)c;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  assert_int_equal(fclose(file), 0);
}

#endif
