/* maze.c: see maze.h. The maze is a tree dug by a walk that goes back where it cannot go on, with a few walls
 * taken away afterwards, so that there are ways around. */
#include "agent/envs/maze/maze.h"

enum { SIDE = 8, CELLS = SIDE * SIDE, WAYS = 4, GAPS = 5, NOWHERE = -1, OBSERVATION = 5 * WAYS + 4 };

typedef struct maze {
  uint8_t open[CELLS];   /* bit w: one can go that way; never believed at the rim */
  uint8_t visits[CELLS]; /* so often, or 255 */
  uint8_t back[CELLS];   /* 1 + the way from where one came first; 0: not yet, or the start */
  uint8_t at, exit;      /* taken modulo CELLS, since states may come from elsewhere */
} maze;

static const int STEPS[WAYS][2] = {{0, 1}, {1, 0}, {0, -1}, {-1, 0}}; /* up, right, down, left */

static int beside(int cell, int way) {
  int x = cell % SIDE + STEPS[way][0], y = cell / SIDE + STEPS[way][1];
  return x >= 0 && x < SIDE && y >= 0 && y < SIDE ? y * SIDE + x : NOWHERE;
}

static int opposite(int way) { return (way + 2) % WAYS; }

/* Where one comes to that way, or NOWHERE. */
static int behind(const maze *m, int cell, int way) {
  return m->open[cell] >> way & 1 ? beside(cell, way) : NOWHERE;
}

/* ---- episodes --------------------------------------------------------------------------- */

static void open_wall(maze *m, int cell, int way) {
  int other = beside(cell, way);
  if (other == NOWHERE) return;
  m->open[cell] |= (uint8_t)(1 << way);
  m->open[other] |= (uint8_t)(1 << opposite(way));
}

/* A way to a cell that nothing leads to yet, or NOWHERE. */
static int choose_way(const maze *m, int cell, shoal_pcg64 *random) {
  int ways[WAYS];
  uint32_t count = 0;
  for (int w = 0; w < WAYS; w++) {
    int other = beside(cell, w);
    if (other != NOWHERE && m->open[other] == 0) ways[count++] = w;
  }
  return count ? ways[shoal_pcg64_below(random, count)] : NOWHERE;
}

static void dig(maze *m, shoal_pcg64 *random) {
  uint8_t path[CELLS] = {(uint8_t)shoal_pcg64_below(random, CELLS)};
  for (int length = 1; length > 0;) {
    int cell = path[length - 1], way = choose_way(m, cell, random);
    if (way == NOWHERE) {
      length--;
      continue;
    }
    open_wall(m, cell, way);
    path[length++] = (uint8_t)beside(cell, way);
  }
  for (int i = 0; i < GAPS; i++) {
    int cell = (int)shoal_pcg64_below(random, CELLS);
    open_wall(m, cell, (int)shoal_pcg64_below(random, WAYS));
  }
}

static void reset(void *state, shoal_pcg64 *random) {
  maze *m = state;
  *m = (maze){0};
  dig(m, random);
  m->at = (uint8_t)(shoal_pcg64_below(random, SIDE) * SIDE);
  m->exit = (uint8_t)(shoal_pcg64_below(random, SIDE) * SIDE + SIDE - 1);
  m->visits[m->at] = 1;
}

/* Returns the reward. */
static float move(maze *m, int way, bool *ended) {
  int next = behind(m, m->at % CELLS, way);
  *ended = false;
  if (next == NOWHERE) return -0.02f;
  if (m->visits[next] == 0) m->back[next] = (uint8_t)(1 + opposite(way));
  if (m->visits[next] < UINT8_MAX) m->visits[next]++;
  m->at = (uint8_t)next;
  *ended = next == m->exit % CELLS;
  return *ended ? 1.0f : -0.01f;
}

static void step(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms, float *rewards,
                 bool *ended) {
  (void)randoms;
  maze *all = states;
  for (uint32_t i = 0; i < count; i++)
    rewards[i] = move(&all[i], (int)shoal_env_choice(actions[i], WAYS), &ended[i]);
}

/* ---- what is seen ----------------------------------------------------------------------- */

static float sign(int value) { return (float)((value > 0) - (value < 0)); }

static void see(const maze *m, float *out) {
  int at = m->at % CELLS, exit = m->exit % CELLS;
  for (int w = 0; w < WAYS; w++) {
    int next = behind(m, at, w), far = 0;
    for (int cell = next; cell != NOWHERE; cell = behind(m, cell, w)) far++;
    int visits = next == NOWHERE ? 4 : m->visits[next];
    out[w] = next != NOWHERE;
    out[WAYS + w] = (float)far / SIDE;
    out[2 * WAYS + w] = visits == 0;
    out[3 * WAYS + w] = (float)(visits < 4 ? visits : 4) / 4;
    out[4 * WAYS + w] = m->back[at] == 1 + w;
  }
  int x = exit % SIDE - at % SIDE, y = exit / SIDE - at / SIDE;
  out += 5 * WAYS;
  out[0] = (float)x / SIDE;
  out[1] = (float)y / SIDE;
  out[2] = sign(x);
  out[3] = sign(y);
}

static void observe(const void *states, uint32_t count, float *out) {
  const maze *all = states;
  for (uint32_t i = 0; i < count; i++) see(&all[i], out + (size_t)i * OBSERVATION);
}

/* ---- for people ------------------------------------------------------------------------- */

/* Whether there is a wall on this line (counted from the left, or the bottom) at the place `along` it. */
static bool is_wall(const maze *m, bool upright, int line, int along) {
  if (line == 0 || line == SIDE) return true;
  int cell = upright ? along * SIDE + line - 1 : (line - 1) * SIDE + along;
  return behind(m, cell, upright ? 1 : 0) == NOWHERE;
}

/* Walls that follow one another are one line. */
static void draw_walls(const maze *m, shoal_canvas *canvas) {
  for (int i = 0; i < 2 * (SIDE + 1); i++) {
    bool upright = i <= SIDE;
    int line = i % (SIDE + 1), from = 0;
    for (int along = 0; along <= SIDE; along++) {
      if (along < SIDE && is_wall(m, upright, line, along)) continue;
      float fixed = (float)line, a = (float)from, b = (float)along;
      const float ends[2][2] = {{upright ? fixed : a, upright ? a : fixed},
                                {upright ? fixed : b, upright ? b : fixed}};
      if (along > from) shoal_canvas_line(canvas, SHOAL_INK_LINE, 0.1f, ends, 2);
      from = along + 1;
    }
  }
}

static void draw(const void *state, shoal_canvas *canvas) {
  const maze *m = state;
  int at = m->at % CELLS, exit = m->exit % CELLS;
  float x = (float)(exit % SIDE), y = (float)(exit / SIDE);
  shoal_canvas_view(canvas, -0.3f, SIDE + 0.3f, -0.3f, SIDE + 0.3f);
  shoal_canvas_box(canvas, SHOAL_INK_GOAL, x + 0.15f, x + 0.85f, y + 0.15f, y + 0.85f);
  for (int c = 0; c < CELLS; c++)
    if (m->visits[c] > 0)
      shoal_canvas_disc(canvas, SHOAL_INK_FAINT, (float)(c % SIDE) + 0.5f, (float)(c / SIDE) + 0.5f, 0.15f);
  draw_walls(m, canvas);
  shoal_canvas_disc(canvas, SHOAL_INK_BODY, (float)(at % SIDE) + 0.5f, (float)(at / SIDE) + 0.5f, 0.3f);
}

const shoal_env_kind shoal_env_maze = {
    .name = "Maze-v0",
    .says = "find the way out of a maze that is new every time",
    .observation = OBSERVATION,
    .choices = WAYS,
    .action_width = 1,
    .limit = 200,
    .solved = 0.6,
    .pace = 12,
    .bytes = sizeof(maze),
    .reset = reset,
    .step = step,
    .observe = observe,
    .draw = draw,
};
