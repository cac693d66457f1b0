/* snake.c: see snake.h. The board holds for each field how many steps the snake will still lie on it, so
 * that its length is the number at its head, 1 is the end of its tail, and any bytes are a board. */
#include "agent/envs/snake/snake.h"

#include <string.h>

enum { SIDE = 12, FIELDS = SIDE * SIDE, START_LENGTH = 3, HUNGER_MAX = FIELDS, NOWHERE = -1 };
enum { LOOK = 3, WINDOW = 2 * LOOK + 1, OBSERVATION = WINDOW * WINDOW - 1 + 14, CHOICES = 3 };

typedef struct snake {
  uint8_t left[FIELDS]; /* steps; row 0 is at the bottom */
  uint8_t head, food;   /* fields; taken modulo their number, since states may come from elsewhere */
  uint8_t heading;      /* up, right, down, left; likewise */
  uint8_t length, hunger;
} snake;

static const int STEPS[4][2] = {{0, 1}, {1, 0}, {0, -1}, {-1, 0}};
static const int TURNS[CHOICES] = {0, 3, 1};

static int field_at(int x, int y) {
  return x >= 0 && x < SIDE && y >= 0 && y < SIDE ? y * SIDE + x : NOWHERE;
}

static int beside(int field, int heading) {
  return field_at(field % SIDE + STEPS[heading][0], field / SIDE + STEPS[heading][1]);
}

/* The end of the tail moves away as the head comes. */
static bool is_blocked(const snake *s, int field) { return field == NOWHERE || s->left[field] > 1; }

/* ---- episodes --------------------------------------------------------------------------- */

static void place_food(snake *s, shoal_pcg64 *random) {
  uint32_t free = 0;
  for (int f = 0; f < FIELDS; f++) free += s->left[f] == 0;
  if (free == 0) return;
  uint32_t chosen = shoal_pcg64_below(random, free);
  for (int f = 0; f < FIELDS; f++)
    if (s->left[f] == 0 && chosen-- == 0) s->food = (uint8_t)f;
}

static void reset(void *state, shoal_pcg64 *random) {
  snake *s = state;
  *s = (snake){.length = START_LENGTH};
  s->heading = (uint8_t)shoal_pcg64_below(random, 4);
  int room = SIDE - 2 * START_LENGTH;
  int x = START_LENGTH + (int)shoal_pcg64_below(random, (uint32_t)room);
  int y = START_LENGTH + (int)shoal_pcg64_below(random, (uint32_t)room);
  s->head = (uint8_t)field_at(x, y);
  int field = s->head;
  for (int i = START_LENGTH; i > 0; i--) {
    s->left[field] = (uint8_t)i;
    field = beside(field, (s->heading + 2) % 4);
  }
  place_food(s, random);
}

/* Returns the reward. */
static float move(snake *s, uint32_t choice, shoal_pcg64 *random, bool *ended) {
  int heading = (s->heading + TURNS[choice]) % 4, next = beside(s->head % FIELDS, heading);
  s->heading = (uint8_t)heading;
  *ended = true;
  if (is_blocked(s, next)) return -1;
  bool ate = next == s->food;
  if (ate && s->length < FIELDS) s->length++;
  for (int f = 0; !ate && f < FIELDS; f++) s->left[f] = (uint8_t)(s->left[f] - (s->left[f] > 0));
  s->left[next] = s->length;
  s->head = (uint8_t)next;
  s->hunger = ate ? 0 : (uint8_t)(s->hunger + 1);
  if (s->hunger >= HUNGER_MAX) return -1;
  *ended = s->length >= FIELDS;
  if (ate) place_food(s, random);
  return ate ? 1 : 0;
}

static void step(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms, float *rewards,
                 bool *ended) {
  snake *all = states;
  for (uint32_t i = 0; i < count; i++)
    rewards[i] = move(&all[i], shoal_env_choice(actions[i], CHOICES), &randoms[i], &ended[i]);
}

/* ---- what is seen ----------------------------------------------------------------------- */

typedef struct board {
  uint16_t free[SIDE]; /* a bit a field */
} board;

static uint16_t spread(uint16_t row, uint16_t free) {
  for (uint16_t before = 0; row != before;) {
    before = row;
    row = (uint16_t)((row | row << 1 | row >> 1) & free);
  }
  return row;
}

/* How many free fields hang together with this one. */
static uint32_t reach(const board *b, int field) {
  uint16_t seen[SIDE] = {0};
  if (field == NOWHERE || !(b->free[field / SIDE] >> field % SIDE & 1)) return 0;
  seen[field / SIDE] = (uint16_t)(1 << field % SIDE);
  for (bool grew = true; grew;) {
    grew = false;
    for (int pass = 0; pass < 2 * SIDE; pass++) {
      int y = pass < SIDE ? pass : 2 * SIDE - 1 - pass;
      uint16_t around = (uint16_t)(seen[y] | (y > 0 ? seen[y - 1] : 0) | (y < SIDE - 1 ? seen[y + 1] : 0));
      uint16_t now = spread(around & b->free[y], b->free[y]);
      grew |= now != seen[y];
      seen[y] = now;
    }
  }
  uint32_t fields = 0;
  for (int y = 0; y < SIDE; y++) fields += (uint32_t)__builtin_popcount(seen[y]);
  return fields;
}

/* From the snake's head: how far ahead and to the right. */
static void turned(const snake *s, int field, int out[2]) {
  int head = s->head % FIELDS, heading = s->heading % 4;
  const int *ahead = STEPS[heading], *right = STEPS[(heading + 1) % 4];
  int x = field % SIDE - head % SIDE, y = field / SIDE - head / SIDE;
  out[0] = x * ahead[0] + y * ahead[1];
  out[1] = x * right[0] + y * right[1];
}

static float *see_window(const snake *s, float *out) {
  int head = s->head % FIELDS, heading = s->heading % 4;
  const int *ahead = STEPS[heading], *right = STEPS[(heading + 1) % 4];
  for (int a = LOOK; a >= -LOOK; a--) {
    for (int r = -LOOK; r <= LOOK; r++) {
      if (a == 0 && r == 0) continue;
      int field =
          field_at(head % SIDE + a * ahead[0] + r * right[0], head / SIDE + a * ahead[1] + r * right[1]);
      *out++ = is_blocked(s, field) ? 1 : 0;
    }
  }
  return out;
}

static float *see_ways(const snake *s, float *out) {
  board b = {{0}};
  for (int f = 0; f < FIELDS; f++) b.free[f / SIDE] |= (uint16_t)(!is_blocked(s, f) << f % SIDE);
  for (int c = 0; c < CHOICES; c++) {
    int heading = (s->heading + TURNS[c]) % 4, free = 0, next = beside(s->head % FIELDS, heading);
    out[CHOICES + c] = (float)reach(&b, next) / FIELDS;
    for (; !is_blocked(s, next); next = beside(next, heading)) free++;
    out[c] = (float)free / SIDE;
  }
  return out + 2 * CHOICES;
}

static float sign(int value) { return (float)((value > 0) - (value < 0)); }

static void see(const snake *s, float *out) {
  int food[2], tail[2], end = s->head % FIELDS;
  for (int f = 0; f < FIELDS; f++)
    if (s->left[f] == 1) end = f;
  turned(s, s->food % FIELDS, food);
  turned(s, end, tail);
  out = see_window(s, out);
  for (int i = 0; i < 2; i++) *out++ = (float)food[i] / SIDE;
  for (int i = 0; i < 2; i++) *out++ = sign(food[i]);
  out = see_ways(s, out);
  for (int i = 0; i < 2; i++) *out++ = (float)tail[i] / SIDE;
  *out++ = (float)s->length / FIELDS;
  *out++ = (float)s->hunger / HUNGER_MAX;
}

static void observe(const void *states, uint32_t count, float *out) {
  const snake *all = states;
  for (uint32_t i = 0; i < count; i++) see(&all[i], out + (size_t)i * OBSERVATION);
}

/* ---- for people ------------------------------------------------------------------------- */

static void middle_of(int field, float out[2]) {
  out[0] = (float)(field % SIDE) + 0.5f;
  out[1] = (float)(field / SIDE) + 0.5f;
}

/* From the tail's end to the head, as lines of as many points as one takes. */
static void draw_body(const snake *s, shoal_canvas *canvas) {
  float points[SHOAL_SHAPE_POINTS_MAX][2];
  int order[256];
  uint32_t count = 0;
  for (int i = 0; i < 256; i++) order[i] = NOWHERE;
  for (int f = 0; f < FIELDS; f++) order[s->left[f]] = f;
  for (int i = 1; i < 256; i++) {
    if (order[i] == NOWHERE) continue;
    middle_of(order[i], points[count++]);
    if (count < SHOAL_SHAPE_POINTS_MAX) continue;
    shoal_canvas_line(canvas, SHOAL_INK_BODY, 0.6f, (const float(*)[2])points, count);
    memcpy(points[0], points[count - 1], sizeof points[0]);
    count = 1;
  }
  if (count > 0) shoal_canvas_line(canvas, SHOAL_INK_BODY, 0.6f, (const float(*)[2])points, count);
}

static void draw(const void *state, shoal_canvas *canvas) {
  const snake *s = state;
  float head[2], food[2];
  shoal_canvas_view(canvas, -0.4f, SIDE + 0.4f, -0.4f, SIDE + 0.4f);
  shoal_canvas_line(canvas, SHOAL_INK_LINE, 0.15f,
                    (const float[][2]){{-0.1f, -0.1f},
                                       {SIDE + 0.1f, -0.1f},
                                       {SIDE + 0.1f, SIDE + 0.1f},
                                       {-0.1f, SIDE + 0.1f},
                                       {-0.1f, -0.1f}},
                    5);
  middle_of(s->food % FIELDS, food);
  shoal_canvas_disc(canvas, SHOAL_INK_GOAL, food[0], food[1], 0.35f);
  draw_body(s, canvas);
  middle_of(s->head % FIELDS, head);
  shoal_canvas_disc(canvas, SHOAL_INK_ACCENT, head[0], head[1], 0.42f);
  const int *ahead = STEPS[s->heading % 4], *right = STEPS[(s->heading + 1) % 4];
  for (int side = -1; side <= 1; side += 2)
    shoal_canvas_disc(canvas, SHOAL_INK_LINE,
                      head[0] + 0.15f * (float)ahead[0] + 0.17f * (float)(side * right[0]),
                      head[1] + 0.15f * (float)ahead[1] + 0.17f * (float)(side * right[1]), 0.07f);
}

const shoal_env_kind shoal_env_snake = {
    .name = "Snake-v0",
    .says = "eat, grow, and bite neither the wall nor yourself",
    .observation = OBSERVATION,
    .choices = CHOICES,
    .action_width = 1,
    .limit = 3000,
    .solved = 45,
    .pace = 12,
    .bytes = sizeof(snake),
    .reset = reset,
    .step = step,
    .observe = observe,
    .draw = draw,
};
