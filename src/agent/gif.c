/* gif.c: see gif.h.
 *
 *   header      "GIF89a", width, height, flags, background, aspect; 64 colours of 3 bytes
 *   loop        21 FF 0B "NETSCAPE2.0" 03 01, times (0: for ever), 00
 *   a picture   21 F9 04 flags, ticks, transparent, 00: how long it stays
 *               2C x, y, width, height, flags: where it is
 *               bits of a colour; blocks, each a length and as many bytes; 00
 *   trailer     3B
 *
 * Numbers are of two bytes, the low one first. Pixels are compressed by LZW: a code stands for a string of
 * pixels, and every code sent adds the string that is one pixel longer to the table. Codes grow from 7 to 12
 * bits as the table does; a full table is begun anew. */
#include "agent/gif.h"

#include <string.h>

enum {
  CLEAR = 1 << SHOAL_COLOUR_BITS, /* the codes below it are the colours */
  END = CLEAR + 1,
  CODES_MAX = 4096,
  SLOTS = 8192, /* of the hash table, twice as many as codes */
  BLOCK = 255,
  STAYS = 1 << 2, /* what a picture drew is still there under the next */
};

static void add_byte(shoal_text *out, unsigned byte) { shoal_text_add(out, &(uint8_t){(uint8_t)byte}, 1); }

static void add_u16(shoal_text *out, uint32_t number) {
  add_byte(out, number & 0xff);
  add_byte(out, number >> 8);
}

void shoal_gif_begin(shoal_text *out, uint32_t width, uint32_t height, const uint8_t rgb[SHOAL_COLOURS][3]) {
  static const uint8_t unused[(1 << SHOAL_COLOUR_BITS) - SHOAL_COLOURS + 1][3];
  shoal_text_add(out, "GIF89a", 6);
  add_u16(out, width);
  add_u16(out, height);
  add_byte(out, 0x80 | 7 << 4 | (SHOAL_COLOUR_BITS - 1)); /* there are colours, of 8 bits a part; how many */
  add_byte(out, 0);
  add_byte(out, 0);
  shoal_text_add(out, rgb, SHOAL_COLOURS * sizeof rgb[0]);
  shoal_text_add(out, unused, sizeof unused - sizeof unused[0]);
  shoal_text_add(out, "\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0", 19);
}

/* ---- LZW ---------------------------------------------------------------------------- */

/* The table maps a string, which is a code and one more pixel, to its code. */
typedef struct lzw {
  shoal_text *out;
  uint32_t keys[SLOTS]; /* 1 + (code << 8 | pixel); 0: empty */
  uint16_t codes[SLOTS];
  uint32_t next, width; /* the next code to be given; bits of one that is sent */
  uint32_t bits, bits_count;
  uint8_t block[BLOCK];
  uint32_t block_length;
} lzw;

static void flush_block(lzw *z) {
  if (z->block_length == 0) return;
  add_byte(z->out, z->block_length);
  shoal_text_add(z->out, z->block, z->block_length);
  z->block_length = 0;
}

static void put_byte(lzw *z, uint8_t byte) {
  z->block[z->block_length++] = byte;
  if (z->block_length == BLOCK) flush_block(z);
}

static void put_code(lzw *z, uint32_t code) {
  z->bits |= code << z->bits_count;
  z->bits_count += z->width;
  for (; z->bits_count >= 8; z->bits_count -= 8, z->bits >>= 8) put_byte(z, (uint8_t)z->bits);
}

static void begin_table(lzw *z) {
  memset(z->keys, 0, sizeof z->keys);
  z->next = END + 1;
  z->width = SHOAL_COLOUR_BITS + 1;
}

/* The slot of the key, or the empty one where it belongs. */
static uint32_t find_slot(const lzw *z, uint32_t key) {
  uint32_t slot = key * 2654435761u >> 19;
  while (z->keys[slot] != 0 && z->keys[slot] != key) slot = (slot + 1) % SLOTS;
  return slot;
}

/* After a code was sent, its reader has one string more, too. */
static void learn(lzw *z, uint32_t slot, uint32_t key) {
  if (z->next == CODES_MAX) {
    put_code(z, CLEAR);
    begin_table(z);
    return;
  }
  z->keys[slot] = key;
  z->codes[slot] = (uint16_t)z->next;
  if (z->next == 1u << z->width) z->width++;
  z->next++;
}

static void compress_pixels(shoal_text *out, const shoal_part *part) {
  lzw z = {.out = out};
  begin_table(&z);
  put_code(&z, CLEAR);
  uint32_t string = part->pixels[0];
  for (uint32_t y = 0; y < part->height; y++) {
    const uint8_t *row = part->pixels + (size_t)y * part->stride;
    for (uint32_t x = y == 0; x < part->width; x++) {
      uint32_t key = 1 + (string << 8 | row[x]), slot = find_slot(&z, key);
      if (z.keys[slot] == key) {
        string = z.codes[slot];
        continue;
      }
      put_code(&z, string);
      learn(&z, slot, key);
      string = row[x];
    }
  }
  put_code(&z, string);
  /* The reader adds a string for that one, too, and may read the next code one bit wider. */
  if (z.next < CODES_MAX && z.next == 1u << z.width) z.width++;
  put_code(&z, END);
  if (z.bits_count > 0) put_byte(&z, (uint8_t)z.bits);
  flush_block(&z);
}

/* ---- pictures ----------------------------------------------------------------------- */

void shoal_gif_add(shoal_text *out, const shoal_part *part, uint32_t ticks) {
  shoal_text_add(out, "\x21\xf9\x04", 3);
  add_byte(out, STAYS);
  add_u16(out, ticks);
  add_u16(out, 0); /* no transparent colour; the end of the block */
  add_byte(out, 0x2c);
  add_u16(out, part->x);
  add_u16(out, part->y);
  add_u16(out, part->width);
  add_u16(out, part->height);
  add_byte(out, 0);
  add_byte(out, SHOAL_COLOUR_BITS);
  compress_pixels(out, part);
  add_byte(out, 0);
}

void shoal_gif_end(shoal_text *out) { add_byte(out, 0x3b); }
