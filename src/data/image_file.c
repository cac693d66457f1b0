/* image_file.c: see image_file.h. Both libraries report errors by a jump: what is allocated before one hangs
 * off a struct of the caller's, who frees it. */
#include "data/image_file.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* These two in this order: jpeglib.h needs stdio.h and what png.h leaves alone. */
#include <png.h>

#include <jpeglib.h>

#include <jerror.h>

#include "base/file.h"
#include "base/magic.h"
#include "data/limits.h"

enum {
  SCANS_MAX = 256,           /* of a progressive JPEG: each is a pass over the whole image */
  CHUNK_BYTES_MAX = 1 << 20, /* that libpng may allocate for one chunk besides the image */
  REASON_MAX = JMSG_LENGTH_MAX,
};

static const uint8_t png_magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
static const uint8_t jpeg_magic[3] = {0xff, 0xd8, 0xff};

/* A decoding under way. */
typedef struct decoding {
  const uint8_t *bytes;
  size_t length, at;
  shoal_image_file image;
  uint8_t **rows;
  jmp_buf failed;
  char reason[REASON_MAX];
} decoding;

/* Whether the size that stands in the file is within the limits; else the reason is there. */
static bool is_within_limits(decoding *d, uint32_t w, uint32_t h) {
  bool good = w > 0 && h > 0 && w <= SHOAL_IMAGE_FILE_SIDE_MAX && h <= SHOAL_IMAGE_FILE_SIDE_MAX &&
              (uint64_t)w * h <= SHOAL_IMAGE_FILE_PIXELS_MAX;
  if (!good)
    snprintf(d->reason, sizeof d->reason,
             "the image has %ux%u pixels; at most %d million pixels, and %d on each side, are accepted", w, h,
             SHOAL_IMAGE_FILE_PIXELS_MAX >> 20, SHOAL_IMAGE_FILE_SIDE_MAX);
  return good;
}

/* Room for the image, with `channels` as they come from the library, and pointers to its rows. */
static bool allocate(decoding *d, uint32_t w, uint32_t h, uint32_t channels) {
  d->image = (shoal_image_file){.w = w, .h = h, .c = channels};
  d->image.pixels = malloc((size_t)w * h * channels);
  d->rows = malloc(h * sizeof *d->rows);
  if (!d->image.pixels || !d->rows) {
    snprintf(d->reason, sizeof d->reason, "out of memory");
    return false;
  }
  for (uint32_t y = 0; y < h; y++) d->rows[y] = d->image.pixels + (size_t)y * w * channels;
  return true;
}

/* ---- PNG ---------------------------------------------------------------------------- */

static void png_failed(png_structp png, png_const_charp text) {
  decoding *d = png_get_error_ptr(png);
  snprintf(d->reason, sizeof d->reason, "the PNG is broken: %s", text);
  longjmp(d->failed, 1);
}

static void png_warned(png_structp png, png_const_charp text) {
  (void)png;
  (void)text;
}

static void png_take(png_structp png, png_bytep to, size_t count) {
  decoding *d = png_get_io_ptr(png);
  if (count > d->length - d->at) png_error(png, "the file ends too early");
  memcpy(to, d->bytes + d->at, count);
  d->at += count;
}

/* What is transparent shows white. From grey or colours with alpha to those without, in place. */
static void flatten(shoal_image_file *image) {
  uint32_t colours = image->c - 1;
  size_t pixels = (size_t)image->w * image->h;
  const uint8_t *from = image->pixels;
  uint8_t *to = image->pixels;
  for (size_t i = 0; i < pixels; i++, from += image->c, to += colours) {
    uint32_t alpha = from[colours];
    for (uint32_t k = 0; k < colours; k++)
      to[k] = (uint8_t)((from[k] * alpha + 255 * (255 - alpha) + 127) / 255);
  }
  image->c = colours;
}

static bool read_png(decoding *d, png_structp png, png_infop info) {
  if (setjmp(d->failed)) return false;
  png_set_read_fn(png, d, png_take);
  png_set_user_limits(png, SHOAL_IMAGE_FILE_SIDE_MAX, SHOAL_IMAGE_FILE_SIDE_MAX);
  png_set_chunk_malloc_max(png, CHUNK_BYTES_MAX);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1); /* profiles, gamma, texts */
  png_read_info(png, info);
  uint32_t w = png_get_image_width(png, info), h = png_get_image_height(png, info);
  if (!is_within_limits(d, w, h)) return false;
  png_set_expand(png); /* palettes, few bits, a transparent colour */
  png_set_strip_16(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (!allocate(d, w, h, png_get_channels(png, info))) return false;
  png_read_image(png, d->rows);
  png_read_end(png, NULL);
  if (d->image.c % 2 == 0) flatten(&d->image);
  return true;
}

static bool decode_png(decoding *d) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, png_failed, png_warned);
  png_infop info = png ? png_create_info_struct(png) : NULL;
  if (!info) snprintf(d->reason, sizeof d->reason, "out of memory");
  bool good = info && read_png(d, png, info);
  png_destroy_read_struct(&png, &info, NULL);
  return good;
}

/* ---- JPEG --------------------------------------------------------------------------- */

typedef struct jpeg_reading {
  struct jpeg_decompress_struct jpeg;
  struct jpeg_error_mgr errors;
  struct jpeg_progress_mgr progress;
  decoding *decoding;
} jpeg_reading;

static decoding *decoding_of(j_common_ptr jpeg) { return ((jpeg_reading *)jpeg->client_data)->decoding; }

static void jpeg_failed(j_common_ptr jpeg) {
  decoding *d = decoding_of(jpeg);
  char text[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, text);
  snprintf(d->reason, sizeof d->reason, "the JPEG is broken: %.150s", text);
  longjmp(d->failed, 1);
}

/* The library warns of data that is lost and goes on in grey; bytes too many, and the like, do no harm. */
static void jpeg_warned(j_common_ptr jpeg, int level) {
  int code = jpeg->err->msg_code;
  bool lost = code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_JPEG_EOF ||
              code == JWRN_MUST_RESYNC || code == JWRN_ARITH_BAD_CODE;
  if (level < 0 && lost) jpeg_failed(jpeg);
}

static void jpeg_goes_on(j_common_ptr jpeg) {
  decoding *d = decoding_of(jpeg);
  if (((j_decompress_ptr)jpeg)->input_scan_number <= SCANS_MAX) return;
  snprintf(d->reason, sizeof d->reason, "the JPEG has more than %d scans", SCANS_MAX);
  longjmp(d->failed, 1);
}

static bool read_jpeg(decoding *d, jpeg_reading *r) {
  j_decompress_ptr jpeg = &r->jpeg;
  if (setjmp(d->failed)) return false;
  jpeg_create_decompress(jpeg);
  jpeg->progress = &r->progress;
  jpeg_mem_src(jpeg, d->bytes, (unsigned long)d->length);
  jpeg_read_header(jpeg, TRUE);
  if (!is_within_limits(d, jpeg->image_width, jpeg->image_height)) return false;
  if (jpeg->num_components != 1 && jpeg->num_components != 3) {
    snprintf(d->reason, sizeof d->reason,
             "the JPEG has %d colour channels (CMYK, as for print); convert it to RGB", jpeg->num_components);
    return false;
  }
  jpeg->out_color_space = jpeg->num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg->dct_method = JDCT_ISLOW; /* the exact one: the same bytes from vector code and from plain code */
  jpeg->do_fancy_upsampling = TRUE;
  jpeg_start_decompress(jpeg);
  if (!allocate(d, jpeg->output_width, jpeg->output_height, (uint32_t)jpeg->output_components)) return false;
  while (jpeg->output_scanline < jpeg->output_height)
    jpeg_read_scanlines(jpeg, d->rows + jpeg->output_scanline, jpeg->output_height - jpeg->output_scanline);
  jpeg_finish_decompress(jpeg);
  return true;
}

static bool decode_jpeg(decoding *d) {
  jpeg_reading r = {.decoding = d, .progress = {.progress_monitor = jpeg_goes_on}};
  r.jpeg.err = jpeg_std_error(&r.errors);
  r.jpeg.client_data = &r;
  r.errors.error_exit = jpeg_failed;
  r.errors.emit_message = jpeg_warned;
  bool good = read_jpeg(d, &r);
  jpeg_destroy_decompress(&r.jpeg);
  return good;
}

/* ---- both --------------------------------------------------------------------------- */

bool shoal_image_file_is(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot &&
         (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

bool shoal_image_file_at(const char *path) {
  const shoal_magic *magic = shoal_image_file_is(path) ? NULL : shoal_magic_of_file(path);
  return magic ? magic->is_image : shoal_image_file_is(path);
}

static bool begins(const uint8_t *bytes, size_t length, const uint8_t *magic, size_t magic_length) {
  return length >= magic_length && memcmp(bytes, magic, magic_length) == 0;
}

shoal_status shoal_image_file_decode(shoal_image_file *out, const char *name, const uint8_t *bytes,
                                     size_t length, shoal_error *err) {
  decoding d = {.bytes = bytes, .length = length};
  *out = (shoal_image_file){0};
  bool good = false;
  const shoal_magic *magic = shoal_magic_of(bytes, length);
  if (begins(bytes, length, png_magic, sizeof png_magic))
    good = decode_png(&d);
  else if (begins(bytes, length, jpeg_magic, sizeof jpeg_magic))
    good = decode_jpeg(&d);
  else if (magic && magic->is_image)
    snprintf(d.reason, sizeof d.reason, "%s is not read; convert it to PNG", magic->what);
  else
    snprintf(d.reason, sizeof d.reason, "not a PNG or JPEG file");
  free(d.rows);
  if (good) {
    *out = d.image;
    return SHOAL_OK;
  }
  free(d.image.pixels);
  return shoal_fail(err, SHOAL_CORRUPT, "%s: %s", name, d.reason);
}

shoal_status shoal_image_file_read(shoal_image_file *out, const char *path, shoal_error *err) {
  uint8_t *bytes;
  size_t length;
  *out = (shoal_image_file){0};
  shoal_status status = shoal_file_read(path, SHOAL_IMAGE_FILE_BYTES_MAX, false, &bytes, &length, err);
  if (status != SHOAL_OK) return status;
  status = shoal_image_file_decode(out, path, bytes, length, err);
  free(bytes);
  return status;
}

void shoal_image_file_release(shoal_image_file *image) {
  free(image->pixels);
  *image = (shoal_image_file){0};
}

/* ---- fitting ------------------------------------------------------------------------ */

/* As Pillow and television have it. */
static void make_grey(shoal_image_file *image) {
  size_t pixels = (size_t)image->w * image->h;
  const uint8_t *from = image->pixels;
  for (size_t i = 0; i < pixels; i++, from += 3)
    image->pixels[i] = (uint8_t)((from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000) >> 16);
  image->c = 1;
}

enum { ONE_BITS = 22 }; /* weights of a value add up to 1 << ONE_BITS: with 8 bits more they fit 32 */

/* How a line of values becomes one of another length: value i is the weighted sum of `most` or fewer of the line's
 * from first[i] on. */
typedef struct scaling {
  uint32_t to, most;
  uint32_t *first, *count;
  uint32_t *weights; /* to x most */
} scaling;

static void scaling_release(scaling *s) {
  free(s->first);
  free(s->count);
  free(s->weights);
}

/* Value x lies at (x + 1/2) from / to, value i of the line at i + 1/2; the triangle reaches as far as a step of
 * the coarser of the two. All is multiplied by 2 to, so that these are whole numbers. */
static void weigh(scaling *s, uint32_t from, uint32_t x) {
  int64_t to = s->to, reach = 2 * (int64_t)(from > s->to ? from : s->to);
  int64_t centre = (2 * (int64_t)x + 1) * from, begin = (centre - reach - to) / (2 * to);
  uint32_t *weights = s->weights + (size_t)x * s->most;
  uint32_t first = begin < 0 ? 0 : (uint32_t)begin, count = 0, largest = 0, rest = 1u << ONE_BITS;
  uint64_t sum = 0;
  for (uint32_t i = first; i < from; i++) {
    int64_t distance = (2 * (int64_t)i + 1) * to - centre, height = reach - llabs(distance);
    if (height <= 0 && count > 0) break;
    if (height <= 0) {
      first = i + 1;
      continue;
    }
    weights[count] = (uint32_t)height;
    sum += weights[count];
    if (weights[count] > weights[largest]) largest = count;
    count++;
  }
  for (uint32_t i = 0; i < count; i++) {
    weights[i] = (uint32_t)(((uint64_t)weights[i] << ONE_BITS) / sum);
    rest -= weights[i];
  }
  weights[largest] += rest; /* what rounding down has left */
  s->first[x] = first;
  s->count[x] = count;
}

static bool scaling_init(scaling *s, uint32_t from, uint32_t to) {
  uint32_t step = (from + to - 1) / to;
  *s = (scaling){.to = to, .most = 2 * step + 2};
  s->first = malloc(to * sizeof *s->first);
  s->count = malloc(to * sizeof *s->count);
  s->weights = malloc((size_t)to * s->most * sizeof *s->weights);
  if (!s->first || !s->count || !s->weights) return false;
  for (uint32_t x = 0; x < to; x++) weigh(s, from, x);
  return true;
}

/* One line: values lie `step` apart in both. */
static void scale_line(const scaling *s, const uint8_t *from, size_t from_step, uint8_t *to, size_t to_step) {
  for (uint32_t x = 0; x < s->to; x++) {
    const uint8_t *at = from + s->first[x] * from_step;
    const uint32_t *weights = s->weights + (size_t)x * s->most;
    uint32_t sum = 1u << (ONE_BITS - 1);
    for (uint32_t i = 0; i < s->count[x]; i++) sum += weights[i] * at[i * from_step];
    to[x * to_step] = (uint8_t)(sum >> ONE_BITS);
  }
}

/* A part of the image: along its rows first, then down its columns. */
static bool scale(const shoal_image_file *image, uint32_t left, uint32_t top, uint32_t part_w,
                  uint32_t part_h, uint32_t h, uint32_t w, uint8_t *out) {
  scaling across = {0}, down = {0};
  uint8_t *narrow = malloc((size_t)part_h * w);
  bool good = narrow && scaling_init(&across, part_w, w) && scaling_init(&down, part_h, h);
  for (uint32_t k = 0; good && k < image->c; k++, out += (size_t)h * w) {
    for (uint32_t y = 0; y < part_h; y++) {
      const uint8_t *row = image->pixels + (((size_t)top + y) * image->w + left) * image->c + k;
      scale_line(&across, row, image->c, narrow + (size_t)y * w, 1);
    }
    for (uint32_t x = 0; x < w; x++) scale_line(&down, narrow + x, w, out + x, w);
  }
  scaling_release(&across);
  scaling_release(&down);
  free(narrow);
  return good;
}

shoal_status shoal_image_file_fit(shoal_image_file *image, uint32_t c, uint32_t h, uint32_t w, uint8_t *out,
                                  shoal_error *err) {
  if (c == 1 && image->c == 3) make_grey(image);
  /* The largest part with the proportions of w to h, around the centre. */
  uint64_t part_w = image->w, part_h = image->h;
  if (part_w * h > part_h * w)
    part_w = (part_h * w + h / 2) / h;
  else
    part_h = (part_w * h + w / 2) / w;
  part_w = part_w < 1 ? 1 : part_w > image->w ? image->w : part_w;
  part_h = part_h < 1 ? 1 : part_h > image->h ? image->h : part_h;
  uint32_t left = (image->w - (uint32_t)part_w) / 2, top = (image->h - (uint32_t)part_h) / 2;
  if (!scale(image, left, top, (uint32_t)part_w, (uint32_t)part_h, h, w, out))
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  size_t plane = (size_t)h * w;
  for (uint32_t k = image->c; k < c; k++) memcpy(out + k * plane, out, plane);
  return SHOAL_OK;
}
