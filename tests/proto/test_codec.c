/* The formats of floats on a wire: what is exact, how far off the others are, that nothing is
 * lost over time, and that no bytes from outside do harm. */
#include "proto/codec.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "check.h"

static const size_t COUNTS[] = {0, 1, 2, 49, 50, 99, 100, 1023, 1024, 1025, 100003};
enum { COUNTS_COUNT = sizeof COUNTS / sizeof COUNTS[0] };

/* Values, residual and decoded values of `count` places in memory that ends where they do, so
 * that a sanitizer sees a step beyond it. */
typedef struct bench {
  size_t count, length, length_max;
  float *values, *residual, *got;
  uint8_t *bytes;
} bench;

static uint64_t draws;
static float draw_normal(void) {
  return shoal_random_normal(shoal_key_make(11, SHOAL_FOR_TOY, 3, 4), draws++);
}
static uint32_t draw_bits(void) { return shoal_random_u32(shoal_key_make(12, SHOAL_FOR_TOY, 3, 4), draws++); }

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

static bench open_bench(shoal_wire_format format, size_t count) {
  bench b = {.count = count, .length_max = shoal_codec_bytes(format, count)};
  b.values = calloc(count, sizeof(float));
  b.residual = calloc(count, sizeof(float));
  b.got = calloc(count, sizeof(float));
  b.bytes = malloc(b.length_max);
  assert_true(count == 0 || (b.values && b.residual && b.got && b.bytes));
  for (size_t i = 0; i < count; i++) b.values[i] = draw_normal() * (i % 3 == 0 ? 1e-3f : 1);
  return b;
}

static void close_bench(bench *b) {
  free(b->values);
  free(b->residual);
  free(b->got);
  free(b->bytes);
}

static shoal_status there_and_back(shoal_wire_format format, bench *b, bool residual) {
  b->length = shoal_codec_encode(format, b->count, b->values, residual ? b->residual : NULL, b->bytes);
  assert_true(b->length <= b->length_max);
  return shoal_codec_decode(format, b->count, b->bytes, b->length, b->got, NULL);
}

static void names_are_known_and_others_are_not(void **state) {
  (void)state;
  static const char *const names[] = {"f32", "bf16", "int8", "topk"};
  shoal_wire_format format;
  for (int i = 0; i < SHOAL_WIRE_FORMATS; i++) {
    assert_true(shoal_codec_named(names[i], &format));
    assert_int_equal(format, i);
  }
  assert_false(shoal_codec_named("", &format));
  assert_false(shoal_codec_named("F32", &format));
  assert_false(shoal_codec_named("int8 ", &format));
}

static void f32_is_exact_and_leaves_the_residual_alone(void **state) {
  (void)state;
  for (size_t c = 0; c < COUNTS_COUNT; c++) {
    bench b = open_bench(SHOAL_WIRE_F32, COUNTS[c]);
    static const float odd[] = {-0.0f, FLT_MAX, -FLT_MAX, FLT_MIN, 0x1p-149f};
    for (size_t i = 0; i < b.count; i++) {
      if (i % 7 < 5) b.values[i] = odd[i % 7];
      b.residual[i] = 5;
    }
    assert_int_equal(there_and_back(SHOAL_WIRE_F32, &b, true), SHOAL_OK);
    assert_int_equal(b.length, 4 * b.count);
    for (size_t i = 0; i < b.count; i++) {
      assert_int_equal(bits_of(b.got[i]), bits_of(b.values[i]));
      assert_true(b.residual[i] == 5);
    }
    close_bench(&b);
  }
}

/* What one float is as bf16. */
static uint32_t as_bf16(float value) {
  uint8_t bytes[2];
  assert_int_equal(shoal_codec_encode(SHOAL_WIRE_BF16, 1, &value, NULL, bytes), 2);
  return bytes[0] | (uint32_t)bytes[1] << 8;
}

static void bf16_rounds_to_nearest_even_and_never_up_to_infinity(void **state) {
  (void)state;
  static const uint32_t cases[][2] = {
      {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},
      {0x3f817fff, 0x3f81}, {0x3fffffff, 0x4000}, {0x80000000, 0x8000}, {0x00000001, 0x0000},
      {0x00008001, 0x0001}, {0x007fffff, 0x0080}, {0xbf818000, 0xbf82}, {0x7f7f7fff, 0x7f7f},
      {0x7f7f8000, 0x7f7f}, {0x7f7fffff, 0x7f7f}, {0xff7fffff, 0xff7f}, {0x7f800000, 0x7f80},
      {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0x7fffffff, 0x7fc0}, {0xffffffff, 0xffc0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_int_equal(as_bf16(float_of(cases[i][0])), cases[i][1]);
  for (int i = 0; i < 200000; i++) { /* and as its neighbours say */
    uint32_t bits = draw_bits();
    if ((bits & 0x7fffffff) >= 0x7f7f0000) continue;
    uint32_t down = bits >> 16, got = as_bf16(float_of(bits));
    double below = fabs((double)float_of(bits) - (double)float_of(down << 16));
    double above = fabs((double)float_of((down + 1) << 16) - (double)float_of(bits));
    uint32_t want = below < above || (below == above && down % 2 == 0) ? down : down + 1;
    assert_int_equal(got, want);
  }
}

/* The scale of the block that place i is in. */
static float scale_at(const bench *b, size_t i) {
  float scale;
  memcpy(&scale, b->bytes + i / SHOAL_INT8_BLOCK * (SHOAL_INT8_BLOCK + 4), 4);
  return scale;
}

static void int8_is_at_most_half_a_scale_off(void **state) {
  (void)state;
  static const float sizes[] = {1, 1e-20f, 1e-36f, 1e-38f, 1e-41f, 0x1p-149f, 0, 1e30f, 4e37f, FLT_MAX};
  for (size_t c = 0; c < COUNTS_COUNT; c++)
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
      bench b = open_bench(SHOAL_WIRE_INT8, COUNTS[c]);
      for (size_t i = 0; i < b.count; i++) b.values[i] = fminf(fmaxf(b.values[i], -1), 1) * sizes[s];
      assert_int_equal(there_and_back(SHOAL_WIRE_INT8, &b, true), SHOAL_OK);
      assert_int_equal(b.length, b.count + (b.count + 1023) / 1024 * 4);
      for (size_t i = 0; i < b.count; i++) {
        double error = (double)b.values[i] - (double)b.got[i], scale = (double)scale_at(&b, i);
        assert_true(fabs(error) <= scale / 2);
        assert_true(error == (double)b.residual[i]); /* to the last bit */
        double largest = 0;
        for (size_t k = i / 1024 * 1024; i % 1024 == 0 && k < b.count && k < i + 1024; k++)
          largest = fmax(largest, fabs((double)b.values[k]));
        if (i % 1024 == 0) assert_true(scale <= fmax(largest / 127 * (1 + 0x1p-14), (double)FLT_MIN));
      }
      close_bench(&b);
    }
}

static const float *ranked;

/* The larger first, and of two alike the one with the lower place. */
static int by_rank(const void *a, const void *b) {
  uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
  float x = fabsf(ranked[i]), y = fabsf(ranked[k]);
  return x > y ? -1 : x < y ? 1 : i < k ? -1 : 1;
}

static void topk_keeps_the_largest_and_of_ties_the_first(void **state) {
  (void)state;
  for (size_t c = 0; c < COUNTS_COUNT; c++)
    for (int ties = 0; ties < 4; ties++) {
      bench b = open_bench(SHOAL_WIRE_TOPK, COUNTS[c]);
      size_t k = b.count / 50 > 0 ? b.count / 50 : b.count > 0;
      for (size_t i = 0; i < b.count; i++) {
        if (ties == 1) b.values[i] = rintf(b.values[i] * 2); /* few different values */
        if (ties == 2) b.values[i] = i % 2 ? 3 : -3;
        if (ties == 3) b.values[i] = 0;
      }
      uint32_t *order = calloc(b.count + 1, sizeof *order);
      for (uint32_t i = 0; i < b.count; i++) order[i] = i;
      ranked = b.values;
      qsort(order, b.count, sizeof *order, by_rank);
      assert_int_equal(there_and_back(SHOAL_WIRE_TOPK, &b, true), SHOAL_OK);
      assert_int_equal(b.length, 4 + 6 * k);
      uint8_t *sent = calloc(b.count + 1, 1);
      for (size_t i = 0; i < k; i++) {
        uint32_t place;
        memcpy(&place, b.bytes + 4 + 6 * i, 4);
        sent[place] = 1;
      }
      for (size_t r = 0; r < b.count; r++) {
        uint32_t i = order[r];
        assert_int_equal(sent[i], r < k);
        assert_true(b.got[i] == (r < k ? float_of(as_bf16(b.values[i]) << 16) : 0));
        assert_true(b.got[i] + b.residual[i] == b.values[i]);
      }
      free(sent);
      free(order);
      close_bench(&b);
    }
}

/* After many rounds of one gradient as much has arrived as was meant to, less what is on its
 * way. For topk that is some rounds' worth, since a place's turn comes every so often. */
static void what_is_left_out_comes_later(void **state) {
  (void)state;
  enum { ROUNDS = 2000, COUNT = 1300 };
  for (int format = SHOAL_WIRE_BF16; format < SHOAL_WIRE_FORMATS; format++) {
    bench b = open_bench((shoal_wire_format)format, COUNT);
    double *sums = calloc(COUNT, sizeof *sums), most = 0;
    for (int round = 0; round < ROUNDS; round++) {
      assert_int_equal(there_and_back((shoal_wire_format)format, &b, true), SHOAL_OK);
      for (size_t i = 0; i < COUNT; i++) sums[i] += (double)b.got[i];
    }
    for (size_t i = 0; i < COUNT; i++)
      if (fabsf(b.values[i]) > (float)most) most = (double)fabsf(b.values[i]);
    for (size_t i = 0; i < COUNT; i++) {
      double meant = ROUNDS * (double)b.values[i];
      /* All but the residual arrived; what rounding the sums cost is small beside it. */
      assert_true(fabs(meant - sums[i] - (double)b.residual[i]) <= ROUNDS * most * 0x1p-20);
      double on_its_way = format == SHOAL_WIRE_TOPK ? 60 * most : most / 100;
      assert_true(fabs(meant - sums[i]) <= on_its_way);
    }
    free(sums);
    close_bench(&b);
  }
}

static void without_a_residual_the_rest_is_forgotten(void **state) {
  (void)state;
  for (int format = 0; format < SHOAL_WIRE_FORMATS; format++) {
    bench b = open_bench((shoal_wire_format)format, 3000);
    assert_int_equal(there_and_back((shoal_wire_format)format, &b, true), SHOAL_OK);
    uint8_t *first = malloc(b.length);
    memcpy(first, b.bytes, b.length);
    size_t length = b.length;
    for (int i = 0; i < 2; i++) { /* a residual of zeros, and none, say the same */
      assert_int_equal(there_and_back((shoal_wire_format)format, &b, false), SHOAL_OK);
      assert_int_equal(b.length, length);
      assert_memory_equal(b.bytes, first, length);
    }
    free(first);
    close_bench(&b);
  }
}

/* One value that is not finite, or many, or such a residual: the values are refused at the other
 * end, and no later round suffers. */
static void what_is_not_finite_is_refused_once_and_forgotten(void **state) {
  (void)state;
  static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
  for (int format = 0; format < SHOAL_WIRE_FORMATS; format++)
    for (size_t c = 1; c < COUNTS_COUNT; c++)
      for (size_t k = 0; k < 6; k++) {
        bench b = open_bench((shoal_wire_format)format, COUNTS[c]);
        size_t place = draw_bits() % b.count;
        float before = b.values[place];
        if (k < 4) b.values[place] = bad[k];
        if (k == 4) /* more of them than topk sends, of two kinds */
          for (size_t i = 0; i < b.count; i++) b.values[i] = i % 3 ? NAN : INFINITY;
        if (k == 5 && format != SHOAL_WIRE_F32) b.residual[place] = NAN; /* counts as zero */
        assert_int_equal(there_and_back((shoal_wire_format)format, &b, true),
                         k == 5 ? SHOAL_OK : SHOAL_INVALID);
        for (size_t i = 0; i < b.count; i++) assert_true(isfinite(b.residual[i]));
        if (k < 4) assert_true(b.residual[place] == 0);
        b.values[place] = before;
        if (k == 4)
          for (size_t i = 0; i < b.count; i++) b.values[i] = 1;
        assert_int_equal(there_and_back((shoal_wire_format)format, &b, true), SHOAL_OK);
        close_bench(&b);
      }
}

/* However large and for however long: finite values make bytes that are taken. */
static void finite_values_never_overflow(void **state) {
  (void)state;
  for (int format = 0; format < SHOAL_WIRE_FORMATS; format++) {
    bench b = open_bench((shoal_wire_format)format, 2100);
    for (int round = 0; round < 300; round++) {
      for (size_t i = 0; i < b.count; i++) {
        uint32_t bits = draw_bits();
        if ((bits & 0x7fffffff) >= 0x7f800000) bits &= 0xff7fffff;
        b.values[i] = i < 1050 ? (round % 2 && i % 2 ? -FLT_MAX : FLT_MAX) : float_of(bits);
      }
      assert_int_equal(there_and_back((shoal_wire_format)format, &b, true), SHOAL_OK);
      for (size_t i = 0; i < b.count; i++) assert_true(isfinite(b.residual[i]) && isfinite(b.got[i]));
    }
    close_bench(&b);
  }
}

static void refused(shoal_wire_format format, const bench *b, size_t length) {
  shoal_error err = {0};
  uint8_t *copy = malloc(length);
  memcpy(copy, b->bytes, length < b->length ? length : b->length);
  if (length > b->length) memset(copy + b->length, 0, length - b->length);
  assert_int_equal(shoal_codec_decode(format, b->count, copy, length, b->got, &err), SHOAL_INVALID);
  assert_true(err.text[0] != 0);
  free(copy);
}

static void wrong_lengths_are_refused(void **state) {
  (void)state;
  for (int format = 0; format < SHOAL_WIRE_FORMATS; format++)
    for (size_t c = 0; c < COUNTS_COUNT; c++) {
      bench b = open_bench((shoal_wire_format)format, COUNTS[c]);
      assert_int_equal(there_and_back((shoal_wire_format)format, &b, true), SHOAL_OK);
      for (size_t less = 1; less <= 8 && less <= b.length; less++)
        refused((shoal_wire_format)format, &b, b.length - less);
      for (size_t more = 1; more <= 8; more++) refused((shoal_wire_format)format, &b, b.length + more);
      if (b.length > 0) refused((shoal_wire_format)format, &b, 0);
      close_bench(&b);
    }
}

/* Encodes 1100 values, puts `size` bytes at `at`, and has that refused. */
static void refused_with(shoal_wire_format format, size_t at, const void *bytes, size_t size) {
  bench b = open_bench(format, 1100);
  assert_int_equal(there_and_back(format, &b, true), SHOAL_OK);
  assert_true(at + size <= b.length);
  memcpy(b.bytes + at, bytes, size);
  refused(format, &b, b.length);
  close_bench(&b);
}

static void wrong_contents_are_refused(void **state) {
  (void)state;
  static const uint32_t bad[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f80ffff};
  static const size_t places[] = {0, 1, 1023, 1024, 1099};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
      refused_with(SHOAL_WIRE_F32, 4 * places[k], &bad[i], 4);
      refused_with(SHOAL_WIRE_BF16, 2 * places[k], (const uint8_t *)&bad[i] + 2, 2);
    }
    refused_with(SHOAL_WIRE_INT8, 0, &bad[i], 4);
    refused_with(SHOAL_WIRE_INT8, 1028, &bad[i], 4);
    for (size_t k = 0; k < 22; k++) refused_with(SHOAL_WIRE_TOPK, 8 + 6 * k, (const uint8_t *)&bad[i] + 2, 2);
  }
  const float scales[] = {-1, -0.0f, FLT_MAX, 0x1.0206p121f};
  for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++)
    for (size_t at = 0; at <= 1028; at += 1028) refused_with(SHOAL_WIRE_INT8, at, &scales[i], 4);
  static const uint8_t least[] = {0x80};
  refused_with(SHOAL_WIRE_INT8, 4, least, 1);
  refused_with(SHOAL_WIRE_INT8, 1027, least, 1);
  refused_with(SHOAL_WIRE_INT8, 1107, least, 1);

  static const uint32_t entries[] = {0, 21, 23, 1100, 0x2aaaaaaa + 22, 0x80000016, UINT32_MAX};
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
    refused_with(SHOAL_WIRE_TOPK, 0, &entries[i], 4);
  static const uint32_t beyond[] = {1100, 1101, 0x80000000, UINT32_MAX};
  for (size_t i = 0; i < 4; i++) refused_with(SHOAL_WIRE_TOPK, 4 + 6 * 21, &beyond[i], 4);
  static const uint32_t zero = 0, last = 1099;
  refused_with(SHOAL_WIRE_TOPK, 4 + 6 * 21, &zero, 4); /* falls */
  refused_with(SHOAL_WIRE_TOPK, 4, &last, 4);          /* the next one cannot rise */
}

/* The same place twice, more entries than a 50th, no entry at all. */
static void topk_is_strict_about_its_entries(void **state) {
  (void)state;
  float values[100];
  const uint8_t twice[] = {2, 0, 0, 0, 7, 0, 0, 0, 0x80, 0x3f, 7, 0, 0, 0, 0x80, 0x3f};
  assert_int_equal(shoal_codec_decode(SHOAL_WIRE_TOPK, 100, twice, sizeof twice, values, NULL),
                   SHOAL_INVALID);
  const uint8_t rising[] = {2, 0, 0, 0, 7, 0, 0, 0, 0x80, 0x3f, 8, 0, 0, 0, 0x80, 0x3f};
  assert_int_equal(shoal_codec_decode(SHOAL_WIRE_TOPK, 100, rising, sizeof rising, values, NULL), SHOAL_OK);
  assert_true(values[6] == 0 && values[7] == 1 && values[8] == 1 && values[9] == 0);
  assert_int_equal(shoal_codec_decode(SHOAL_WIRE_TOPK, 99, rising, sizeof rising, values, NULL),
                   SHOAL_INVALID);
  const uint8_t none[] = {0, 0, 0, 0};
  assert_int_equal(shoal_codec_decode(SHOAL_WIRE_TOPK, 100, none, sizeof none, values, NULL), SHOAL_OK);
  for (size_t i = 0; i < 100; i++) assert_true(values[i] == 0);
}

static void an_unknown_format_is_refused(void **state) {
  (void)state;
  float value;
  const uint8_t bytes[4] = {0};
  assert_int_equal(shoal_codec_decode(SHOAL_WIRE_FORMATS, 1, bytes, 4, &value, NULL), SHOAL_INVALID);
  assert_int_equal(shoal_codec_decode((shoal_wire_format)99, 1, bytes, 4, &value, NULL), SHOAL_INVALID);
}

/* Bytes worked out by hand: every compiler, machine and version must make the same, or old and
 * new programs could not work together. */
static void the_bytes_are_the_same_everywhere(void **state) {
  (void)state;
  const float values[] = {1, -0.3f, 0.004f, 127.5f, -1e-9f};
  static const uint8_t bf16[] = {0x80, 0x3f, 0x9a, 0xbe, 0x83, 0x3b, 0xff, 0x42, 0x89, 0xb0};
  static const uint8_t int8[] = {0x00, 0x82, 0x80, 0x3f, 1, 0, 0, 127, 0};
  static const uint8_t topk[] = {1, 0, 0, 0, 3, 0, 0, 0, 0xff, 0x42};
  uint8_t out[64];
  assert_int_equal(shoal_codec_encode(SHOAL_WIRE_BF16, 5, values, NULL, out), sizeof bf16);
  assert_memory_equal(out, bf16, sizeof bf16);
  assert_int_equal(shoal_codec_encode(SHOAL_WIRE_INT8, 5, values, NULL, out), sizeof int8);
  assert_memory_equal(out, int8, sizeof int8);
  assert_int_equal(shoal_codec_encode(SHOAL_WIRE_TOPK, 5, values, NULL, out), sizeof topk);
  assert_memory_equal(out, topk, sizeof topk);
}

static void what_is_not_finite_is_found_wherever_it_is(void **state) {
  (void)state;
  enum { MOST = 2 * SHOAL_INT8_BLOCK + 5 };
  static float values[MOST];
  const float wrong[] = {NAN, -NAN, INFINITY, -INFINITY};
  for (size_t count = 0; count <= MOST; count += 41) {
    assert_true(shoal_codec_finite(count, values));
    for (size_t at = 0; at < count; at += 97) {
      values[at] = wrong[at % 4];
      assert_false(shoal_codec_finite(count, values));
      assert_true(shoal_codec_finite(at, values)); /* those before it */
      values[at] = at % 2 == 0 ? FLT_MAX : -FLT_MIN / 4;
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_are_known_and_others_are_not),
      cmocka_unit_test(f32_is_exact_and_leaves_the_residual_alone),
      cmocka_unit_test(bf16_rounds_to_nearest_even_and_never_up_to_infinity),
      cmocka_unit_test(int8_is_at_most_half_a_scale_off),
      cmocka_unit_test(topk_keeps_the_largest_and_of_ties_the_first),
      cmocka_unit_test(what_is_left_out_comes_later),
      cmocka_unit_test(without_a_residual_the_rest_is_forgotten),
      cmocka_unit_test(what_is_not_finite_is_refused_once_and_forgotten),
      cmocka_unit_test(finite_values_never_overflow),
      cmocka_unit_test(wrong_lengths_are_refused),
      cmocka_unit_test(wrong_contents_are_refused),
      cmocka_unit_test(topk_is_strict_about_its_entries),
      cmocka_unit_test(an_unknown_format_is_refused),
      cmocka_unit_test(the_bytes_are_the_same_everywhere),
      cmocka_unit_test(what_is_not_finite_is_found_wherever_it_is),
  };
  return RUN_TESTS(tests);
}
