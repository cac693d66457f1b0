/* far.c: see far.h. Memory is one large mapping, handed out from the front; a test gives all of it back before it ends. */
#include "device/far.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "kernels/isa.h"

enum { ALIGNMENT = 64 };
#define FAR_BYTES ((size_t)1 << 30) /* of addresses; pages cost nothing until they are written */

static struct {
  shoal_device device;
  shoal_kernels kernels;
  const shoal_kernels *real;
  char *memory;
  size_t used, taken; /* bytes from the front, and pieces that are not given back */
  size_t opened;      /* bytes that are open while a kernel runs */
  far_fault fault;
  uint64_t at;
  far_counts counts;
} far;

static void open_pages(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  far.opened = (far.used + page - 1) / page * page;
  if (far.opened > 0) assert_int_equal(mprotect(far.memory, far.opened, PROT_READ | PROT_WRITE), 0);
}

static void close_pages(void) {
  if (far.opened > 0) assert_int_equal(mprotect(far.memory, far.opened, PROT_NONE), 0);
}

/* Whether this copy is to happen; opens the pages for it. */
static bool begin(far_fault fault, uint64_t *count) {
  bool dropped = far.fault == fault && *count == far.at;
  (*count)++;
  if (!dropped) open_pages();
  return !dropped;
}

/* ---- kernels ---- */

/* What a kernel gets is memory of the device, or NULL; so is what its structs point to. */
static void check_pointer(const void *p) {
  if (p == NULL || ((const char *)p >= far.memory && (const char *)p < far.memory + far.used)) return;
  fail_msg("a kernel gets memory that is not the device's");
}

static void check_pointers(size_t count, const void *const *pointers) {
  for (size_t i = 0; i < count; i++) check_pointer(pointers[i]);
}

static void check_gemm(const void *gemm) {
  const shoal_gemm *g = gemm;
  check_pointers(5, (const void *const[]){g->a, g->b, g->c, g->bias, g->scratch});
}

static void check_sparse(const void *sparse) {
  const shoal_sparse *a = sparse;
  check_pointers(3, (const void *const[]){a->starts, a->columns, a->values});
}

static void check_winograd(const void *job) {
  const shoal_winograd *j = job;
  check_pointers(7, (const void *const[]){j->x, j->w, j->bias, j->dy, j->y, j->dx, j->dw});
}

static void pass_over(const void *other) { (void)other; }

/* Numbers, structs without pointers and lists of pointers are passed over. */
#define CHECK(x) \
  _Generic((x),                                                                                           \
      float *: check_pointer,                                                                             \
      const float *: check_pointer,                                                                       \
      double *: check_pointer,                                                                            \
      int32_t *: check_pointer,                                                                           \
      const int32_t *: check_pointer,                                                                     \
      uint32_t *: check_pointer,                                                                          \
      const uint32_t *: check_pointer,                                                                    \
      uint64_t *: check_pointer,                                                                          \
      const uint64_t *: check_pointer,                                                                    \
      const shoal_gemm *: check_gemm,                                                                     \
      shoal_sparse *: check_sparse,                                                                       \
      const shoal_sparse *: check_sparse,                                                                 \
      const shoal_winograd *: check_winograd,                                                             \
      default: pass_over)((const void *)(uintptr_t)(x));
#define CHECK_2(x, ...) CHECK(x) CHECK(__VA_ARGS__)
#define CHECK_3(x, ...) CHECK(x) CHECK_2(__VA_ARGS__)
#define CHECK_4(x, ...) CHECK(x) CHECK_3(__VA_ARGS__)
#define CHECK_5(x, ...) CHECK(x) CHECK_4(__VA_ARGS__)
#define CHECK_6(x, ...) CHECK(x) CHECK_5(__VA_ARGS__)
#define CHECK_7(x, ...) CHECK(x) CHECK_6(__VA_ARGS__)
#define CHECK_8(x, ...) CHECK(x) CHECK_7(__VA_ARGS__)
#define CHECK_9(x, ...) CHECK(x) CHECK_8(__VA_ARGS__)
#define CHECK_10(x, ...) CHECK(x) CHECK_9(__VA_ARGS__)
#define CHECK_OF(a, b, c, d, e, f, g, h, i, j, name, ...) name
#define CHECK_ALL(...)                                                                                    \
  CHECK_OF(__VA_ARGS__, CHECK_10, CHECK_9, CHECK_8, CHECK_7, CHECK_6, CHECK_5, CHECK_4, CHECK_3, CHECK_2, \
           CHECK, )                                                                                       \
  (__VA_ARGS__)

#define KERNEL(name, parameters, arguments) \
  static void far_##name parameters {       \
    CHECK_ALL arguments open_pages();       \
    far.real->name arguments;               \
    close_pages();                          \
  }

KERNEL(gemm, (const shoal_gemm *g), (g))
KERNEL(sparse_turn, (uint32_t m, uint32_t k, const shoal_sparse *a, shoal_sparse *o), (m, k, a, o))
KERNEL(gemm_sparse, (const shoal_gemm *g, const shoal_sparse *a), (g, a))
KERNEL(conv_forward,
       (const shoal_window *s, const float *x, const float *w, const float *b, float *y, float *scratch),
       (s, x, w, b, y, scratch))
KERNEL(conv_backward_input,
       (const shoal_window *s, const float *dy, const float *w, uint32_t c, float *dx, float *scratch),
       (s, dy, w, c, dx, scratch))
KERNEL(conv_backward_weights, (const shoal_window *s, const float *x, const float *dy, float *dw),
       (s, x, dy, dw))
KERNEL(conv_backward_bias, (const shoal_window *s, const float *dy, float *db), (s, dy, db))
KERNEL(winograd_forward, (const shoal_winograd *j, float *scratch), (j, scratch))
KERNEL(winograd_backward, (const shoal_winograd *j, float *scratch), (j, scratch))
KERNEL(pool_forward, (shoal_pool_kind k, const shoal_window *s, const float *x, float *y), (k, s, x, y))
KERNEL(pool_backward,
       (shoal_pool_kind k, const shoal_window *s, const float *x, const float *y, const float *dy, float *dx),
       (k, s, x, y, dy, dx))
KERNEL(act_forward, (shoal_activation k, size_t n, const float *x, float *y), (k, n, x, y))
KERNEL(act_backward,
       (shoal_activation k, size_t n, const float *x, const float *y, const float *dy, float *dx),
       (k, n, x, y, dy, dx))
KERNEL(softmax_forward, (uint32_t r, uint32_t c, const float *x, float *y), (r, c, x, y))
KERNEL(softmax_backward, (uint32_t r, uint32_t c, const float *y, const float *dy, float *dx),
       (r, c, y, dy, dx))
KERNEL(cross_entropy,
       (uint32_t r, uint32_t c, const float *x, const int32_t *l, const float *w, float s, float *d,
        double *sum, uint64_t *right),
       (r, c, x, l, w, s, d, sum, right))
KERNEL(element_loss,
       (shoal_element_loss k, float a, uint32_t r, uint32_t c, const float *p, const float *t, const float *w,
        float s, float *d, double *sum),
       (k, a, r, c, p, t, w, s, d, sum))
KERNEL(weigh_rows, (uint32_t r, const int32_t *l, const float *c, float *w, double *sum, uint64_t *n),
       (r, l, c, w, sum, n))
KERNEL(binary_right,
       (uint32_t r, uint32_t c, const float *p, const float *t, const float *w, uint64_t *right),
       (r, c, p, t, w, right))
KERNEL(embed_forward, (uint32_t r, uint32_t w, const float *t, const int32_t *ids, float *y),
       (r, w, t, ids, y))
KERNEL(embed_backward, (uint32_t r, uint32_t w, const int32_t *ids, const float *dy, float *dt),
       (r, w, ids, dy, dt))
KERNEL(lstm_forward, (uint32_t n, uint32_t h, uint32_t u, float *g, const float *b, float *c, float *y),
       (n, h, u, g, b, c, y))
KERNEL(lstm_backward,
       (uint32_t n, uint32_t h, uint32_t u, const float *g, const float *b, const float *c, const float *dy,
        float *dc, float *dg),
       (n, h, u, g, b, c, dy, dc, dg))
KERNEL(gru_forward,
       (uint32_t n, uint32_t h, uint32_t u, float *gx, const float *gh, const float *b, float *y),
       (n, h, u, gx, gh, b, y))
KERNEL(gru_backward,
       (uint32_t n, uint32_t h, uint32_t u, const float *gx, const float *gh, const float *b, float *dh,
        float *dgx, float *dgh),
       (n, h, u, gx, gh, b, dh, dgx, dgh))
KERNEL(batchnorm_train,
       (const shoal_norm *s, const float *x, const float *g, const float *b, float e, float *y, float *m,
        float *v),
       (s, x, g, b, e, y, m, v))
KERNEL(batchnorm_infer,
       (const shoal_norm *s, const float *x, const float *g, const float *b, float e, const float *m,
        const float *v, float *y),
       (s, x, g, b, e, m, v, y))
KERNEL(batchnorm_backward,
       (const shoal_norm *s, const float *x, const float *g, float e, const float *m, const float *v,
        const float *dy, float *dx, float *dg, float *db),
       (s, x, g, e, m, v, dy, dx, dg, db))
KERNEL(layernorm_forward,
       (const shoal_norm *s, const float *x, const float *g, const float *b, float e, float *y, float *m,
        float *r),
       (s, x, g, b, e, y, m, r))
KERNEL(layernorm_backward,
       (const shoal_norm *s, const float *x, const float *g, const float *m, const float *r, const float *dy,
        float *dx, float *dg, float *db),
       (s, x, g, m, r, dy, dx, dg, db))
KERNEL(dropout_keys, (uint32_t n, uint64_t seed, uint64_t e, const uint64_t *ids, uint32_t *keys),
       (n, seed, e, ids, keys))
KERNEL(dropout,
       (const shoal_norm *s, const uint32_t *keys, uint32_t t, float scale, const float *x, float *y),
       (s, keys, t, scale, x, y))
KERNEL(lanes_to_rows, (uint32_t f, uint32_t l, uint32_t n, const float *x, float *y), (f, l, n, x, y))
KERNEL(rows_to_lanes, (uint32_t f, uint32_t l, uint32_t n, const float *x, float *y), (f, l, n, x, y))
KERNEL(copy_rows, (size_t r, size_t w, const float *x, size_t xr, float *y, size_t yr), (r, w, x, xr, y, yr))
KERNEL(swap_rows, (uint32_t a, uint32_t b, uint32_t w, const float *x, float *y), (a, b, w, x, y))
KERNEL(zero, (size_t n, float *x), (n, x))
KERNEL(row_numbers, (uint32_t n, uint32_t c, const float *x, size_t xr, uint32_t r, int32_t *ids),
       (n, c, x, xr, r, ids))
KERNEL(bytes_to_lanes,
       (uint32_t c, uint32_t p, uint32_t l, uint32_t n, const uint8_t *const *i, const float *s,
        const float *a, float *y),
       (c, p, l, n, i, s, a, y))
KERNEL(bytes_to_rows,
       (uint32_t c, uint32_t p, uint32_t n, const uint8_t *const *i, const float *s, const float *a,
        float *y),
       (c, p, n, i, s, a, y))
KERNEL(add, (size_t n, const float *a, const float *b, float *y), (n, a, b, y))
KERNEL(add_scaled, (size_t n, const float *a, float f, const float *b, float *y), (n, a, f, b, y))
KERNEL(add_share, (size_t n, float s, float f, const float *x, float *sums), (n, s, f, x, sums))
KERNEL(column_sums, (uint32_t r, uint32_t c, const float *x, size_t row, float *sums), (r, c, x, row, sums))
KERNEL(sum_parts, (size_t n, uint32_t c, const float *const *parts, float *sum), (n, c, parts, sum))
KERNEL(square_sum, (size_t n, const float *x, double *sum), (n, x, sum))
KERNEL(follow, (size_t n, float s, const float *from, const float *to, float *w), (n, s, from, to, w))
KERNEL(update,
       (const shoal_update *u, size_t n, const float *from, float *w, const float *g, float *a, float *b),
       (u, n, from, w, g, a, b))

/* It would have to wait in order to look. */
static bool far_sparse_rows(uint32_t m, uint32_t k, const float *a, uint32_t most, shoal_sparse *out) {
  (void)m, (void)k, (void)a, (void)most, (void)out;
  return false;
}

/* These answer at once and touch no memory. */
static size_t far_gemm_scratch(uint32_t m, uint32_t n, uint32_t k) { return far.real->gemm_scratch(m, n, k); }
static size_t far_conv_scratch(const shoal_window *s) { return far.real->conv_scratch(s); }
static size_t far_winograd_scratch(const shoal_window *s) { return far.real->winograd_scratch(s); }
static double far_spin(uint64_t rounds) { return far.real->spin(rounds); }

#define ENTRY(name) .name = far_##name,

/* ---- the rest of the table ---- */

static void *take(const shoal_device *device, size_t least_bytes, size_t *bytes) {
  assert_ptr_equal(device, &far.device);
  *bytes = (least_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  assert_true(*bytes <= FAR_BYTES - far.used);
  void *memory = far.memory + far.used;
  far.used += *bytes;
  far.taken++;
  open_pages();
  memset(memory, 0xff, *bytes);
  close_pages();
  return memory;
}

static void give(const shoal_device *device, void *memory, size_t bytes) {
  assert_ptr_equal(device, &far.device);
  assert_true((char *)memory >= far.memory && (char *)memory + bytes <= far.memory + far.used);
  far.taken--;
}

static void copy_in(const shoal_device *device, void *to, const void *from, size_t bytes) {
  assert_ptr_equal(device, &far.device);
  assert_true((char *)to >= far.memory && (char *)to + bytes <= far.memory + far.used);
  if (!begin(FAR_DROPS_COPY_IN, &far.counts.in)) return;
  memcpy(to, from, bytes);
  close_pages();
}

static void copy_out(const shoal_device *device, void *to, const void *from, size_t bytes) {
  assert_ptr_equal(device, &far.device);
  assert_true((const char *)from >= far.memory && (const char *)from + bytes <= far.memory + far.used);
  if (!begin(FAR_DROPS_COPY_OUT, &far.counts.out)) return;
  memcpy(to, from, bytes);
  close_pages();
}

static void wait(const shoal_device *device) { assert_ptr_equal(device, &far.device); }

const shoal_device *far_open(far_fault fault, uint64_t at) {
  assert_null(far.memory);
  void *memory = mmap(NULL, FAR_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert_true(memory != MAP_FAILED);
  far.memory = memory;
  far.real = shoal_kernels_get();
  far.kernels = (shoal_kernels){.name = "far", SHOAL_EACH_KERNEL(ENTRY)};
  far.device = (shoal_device){.name = "far",
                              .kernels = &far.kernels,
                              .threads_max = 1,
                              .take = take,
                              .give = give,
                              .copy_in = copy_in,
                              .copy_out = copy_out,
                              .wait = wait};
  far.fault = fault;
  far.at = at;
  far.used = far.taken = 0;
  far.counts = (far_counts){0};
  return &far.device;
}

void far_close(void) {
  assert_int_equal(far.taken, 0);
  assert_int_equal(munmap(far.memory, FAR_BYTES), 0);
  far.memory = NULL;
}

far_counts far_last_count(void) { return far.counts; }
