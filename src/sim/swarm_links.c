/* swarm_links.c: see swarm_links.h. */
#include "sim/swarm_links.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define NONE UINT32_MAX

/* What a heap entry stands for. */
typedef enum entry_kind { UP_FREE, UP_READY, THROUGH, BUNDLE, TIMER } entry_kind;

typedef struct entry {
  double at;
  uint64_t order;
  uint32_t kind : 4, what : 28;
  uint32_t index;
} entry;

typedef struct letter {
  uint32_t from, to;
  uint32_t next;
  shoal_message message;
} letter;

/* A list of letters that arrive together. */
typedef struct bundle {
  uint32_t first, last, next_free;
} bundle;

typedef struct transfer {
  uint32_t from, to;
  double left;      /* bytes that have not left */
  double ready_at;  /* when the next piece may leave */
  bundle bundle;    /* the message itself, and what is behind it */
  bool ended, gone; /* all has left; it was cut meanwhile */
  uint32_t next_free;
} transfer;

typedef struct node {
  double up, down, latency_s;
  double down_free;          /* when the downlink is */
  double up_debt, down_debt; /* bytes of small messages that are not accounted for yet */
  double moved;
  uint32_t *transfers; /* that have something left, or are not through */
  uint32_t count, size, turn;
  bool busy;
  double ready_timer; /* UP_READY is due then; infinity: none */
} node;

struct shoal_links {
  double now, piece_bytes;
  node *nodes;
  uint32_t nodes_count;
  entry *heap;
  uint32_t heap_count, heap_size;
  uint64_t order;
  letter *letters;
  uint32_t letters_count, letters_size, letters_free;
  uint64_t waiting;
  bundle *bundles;
  uint32_t bundles_count, bundles_size, bundles_free;
  transfer *transfers;
  uint32_t transfers_count, transfers_size, transfers_free;
  uint32_t last_bundle, last_from; /* where another letter of the same node and time goes */
  double last_at;
  uint32_t delivering; /* the next letter to be told */
};

/* ---- memory ---- */

static void *grown(void *items, uint32_t *size, size_t bytes_each) {
  *size = *size > 0 ? 2 * *size : 64;
  items = realloc(items, *size * bytes_each);
  SHOAL_ASSERT(items != NULL);
  return items;
}

shoal_links *shoal_links_create(uint32_t nodes, double piece_bytes) {
  shoal_links *l = calloc(1, sizeof *l);
  SHOAL_ASSERT(l != NULL);
  l->nodes = calloc(nodes, sizeof *l->nodes);
  SHOAL_ASSERT(l->nodes != NULL);
  l->nodes_count = nodes;
  for (uint32_t i = 0; i < nodes; i++) l->nodes[i].ready_timer = INFINITY;
  l->piece_bytes = piece_bytes;
  l->letters_free = l->bundles_free = l->transfers_free = l->last_bundle = l->delivering = NONE;
  return l;
}

static void release_letters(shoal_links *l, uint32_t i) {
  for (; i != NONE; i = l->letters[i].next) shoal_message_release(&l->letters[i].message);
}

void shoal_links_destroy(shoal_links *l) {
  if (l == NULL) return;
  for (uint32_t i = 0; i < l->heap_count; i++)
    if (l->heap[i].kind == BUNDLE) release_letters(l, l->bundles[l->heap[i].index].first);
  for (uint32_t i = 0; i < l->nodes_count; i++) {
    for (uint32_t k = 0; k < l->nodes[i].count; k++)
      release_letters(l, l->transfers[l->nodes[i].transfers[k]].bundle.first);
    free(l->nodes[i].transfers);
  }
  release_letters(l, l->delivering);
  free(l->nodes);
  free(l->heap);
  free(l->letters);
  free(l->bundles);
  free(l->transfers);
  free(l);
}

void shoal_links_set(shoal_links *l, uint32_t i, double up, double down, double latency_s) {
  SHOAL_ASSERT(i < l->nodes_count && up > 0 && down > 0);
  l->nodes[i].up = up;
  l->nodes[i].down = down;
  l->nodes[i].latency_s = latency_s;
}

/* ---- the heap: four below each ---- */

static bool earlier(const entry *a, const entry *b) {
  return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void push(shoal_links *l, double at, entry_kind kind, uint32_t index, uint32_t what) {
  if (l->heap_count == l->heap_size) l->heap = grown(l->heap, &l->heap_size, sizeof *l->heap);
  entry e = {.at = at, .order = l->order++, .kind = kind, .what = what, .index = index};
  uint32_t i = l->heap_count++;
  while (i > 0 && earlier(&e, &l->heap[(i - 1) / 4])) {
    l->heap[i] = l->heap[(i - 1) / 4];
    i = (i - 1) / 4;
  }
  l->heap[i] = e;
}

static entry pop(shoal_links *l) {
  entry top = l->heap[0], e = l->heap[--l->heap_count];
  uint32_t i = 0;
  for (;;) {
    uint32_t first = 4 * i + 1, best = first;
    if (first >= l->heap_count) break;
    for (uint32_t k = first + 1; k < first + 4 && k < l->heap_count; k++)
      if (earlier(&l->heap[k], &l->heap[best])) best = k;
    if (!earlier(&l->heap[best], &e)) break;
    l->heap[i] = l->heap[best];
    i = best;
  }
  l->heap[i] = e;
  return top;
}

/* ---- letters ---- */

static uint32_t new_letter(shoal_links *l, uint32_t from, uint32_t to, shoal_message message) {
  uint32_t i = l->letters_free;
  if (i != NONE) {
    l->letters_free = l->letters[i].next;
  } else {
    if (l->letters_count == l->letters_size)
      l->letters = grown(l->letters, &l->letters_size, sizeof *l->letters);
    i = l->letters_count++;
  }
  l->letters[i] = (letter){.from = from, .to = to, .next = NONE, .message = message};
  l->waiting++;
  return i;
}

static void free_letter(shoal_links *l, uint32_t i) {
  l->letters[i].next = l->letters_free;
  l->letters_free = i;
  l->waiting--;
}

static void append(shoal_links *l, bundle *b, uint32_t i) {
  if (b->first == NONE)
    b->first = i;
  else
    l->letters[b->last].next = i;
  b->last = i;
}

static uint32_t send_bundle(shoal_links *l, bundle b, double at) {
  uint32_t i = l->bundles_free;
  if (i != NONE) {
    l->bundles_free = l->bundles[i].next_free;
  } else {
    if (l->bundles_count == l->bundles_size)
      l->bundles = grown(l->bundles, &l->bundles_size, sizeof *l->bundles);
    i = l->bundles_count++;
  }
  l->bundles[i] = b;
  push(l, at, BUNDLE, i, 0);
  return i;
}

/* ---- transfers ---- */

static transfer *find_transfer(shoal_links *l, const node *n, uint32_t to) {
  for (uint32_t k = 0; k < n->count; k++)
    if (l->transfers[n->transfers[k]].to == to) return &l->transfers[n->transfers[k]];
  return NULL;
}

static void send_piece(shoal_links *l, uint32_t index) {
  transfer *t = &l->transfers[index];
  node *from = &l->nodes[t->from], *to = &l->nodes[t->to];
  double bytes = fmin(t->left, l->piece_bytes);
  t->left -= bytes;
  double left_at = l->now + (bytes + from->up_debt) / from->up;
  to->down_free = fmax(to->down_free, l->now) + (bytes + to->down_debt) / to->down;
  from->moved += bytes;
  from->up_debt = to->down_debt = 0;
  t->ready_at = fmax(left_at, to->down_free);
  from->busy = true;
  push(l, left_at, UP_FREE, t->from, 0);
  if (t->left > 0) return;
  t->ended = true;
  push(l, t->ready_at, THROUGH, index, 0);
}

/* The next transfer whose turn it is and that may send. */
static void use_uplink(shoal_links *l, uint32_t node_index) {
  node *n = &l->nodes[node_index];
  if (n->busy) return;
  double soonest = INFINITY;
  for (uint32_t k = 0; k < n->count; k++) {
    uint32_t at = (n->turn + k) % n->count;
    transfer *t = &l->transfers[n->transfers[at]];
    if (t->ended) continue;
    if (t->ready_at <= l->now) {
      n->turn = at + 1;
      send_piece(l, n->transfers[at]);
      return;
    }
    soonest = fmin(soonest, t->ready_at);
  }
  if (soonest >= n->ready_timer || soonest == INFINITY) return;
  n->ready_timer = soonest;
  push(l, soonest, UP_READY, node_index, 0);
}

static void start_transfer(shoal_links *l, uint32_t from, uint32_t letter_index, uint32_t to, double bytes) {
  uint32_t i = l->transfers_free;
  if (i != NONE) {
    l->transfers_free = l->transfers[i].next_free;
  } else {
    if (l->transfers_count == l->transfers_size)
      l->transfers = grown(l->transfers, &l->transfers_size, sizeof *l->transfers);
    i = l->transfers_count++;
  }
  l->transfers[i] = (transfer){.from = from,
                               .to = to,
                               .left = bytes,
                               .ready_at = l->now,
                               .bundle = {.first = letter_index, .last = letter_index}};
  node *n = &l->nodes[from];
  if (n->count == n->size) n->transfers = grown(n->transfers, &n->size, sizeof *n->transfers);
  n->transfers[n->count++] = i;
  use_uplink(l, from);
}

static void free_transfer(shoal_links *l, uint32_t i) {
  l->transfers[i].next_free = l->transfers_free;
  l->transfers_free = i;
}

static void unlist(shoal_links *l, uint32_t index) {
  node *n = &l->nodes[l->transfers[index].from];
  uint32_t k = 0;
  while (n->transfers[k] != index) k++;
  n->transfers[k] = n->transfers[--n->count];
}

static void cut_one(shoal_links *l, uint32_t from, uint32_t to) {
  transfer *t;
  while ((t = find_transfer(l, &l->nodes[from], to)) != NULL) {
    uint32_t index = (uint32_t)(t - l->transfers);
    for (uint32_t i = t->bundle.first; i != NONE;) {
      uint32_t next = l->letters[i].next;
      shoal_message_release(&l->letters[i].message);
      free_letter(l, i);
      i = next;
    }
    t->bundle.first = NONE;
    unlist(l, index);
    t->gone = true;
    if (!t->ended) free_transfer(l, index);
  }
}

void shoal_links_cut(shoal_links *l, uint32_t a, uint32_t b) {
  cut_one(l, a, b);
  cut_one(l, b, a);
}

/* ---- sending ---- */

void shoal_links_send(shoal_links *l, uint32_t from, uint32_t to, shoal_message message, double bytes,
                      bool large) {
  node *n = &l->nodes[from];
  uint32_t i = new_letter(l, from, to, message);
  if (large) {
    start_transfer(l, from, i, to, bytes);
    return;
  }
  n->up_debt += bytes;
  n->moved += bytes;
  l->nodes[to].down_debt += bytes;
  transfer *t = find_transfer(l, n, to);
  if (t != NULL) {
    append(l, &t->bundle, i);
  } else if (l->last_bundle != NONE && l->last_from == from && l->last_at == l->now) {
    append(l, &l->bundles[l->last_bundle], i);
  } else {
    l->last_bundle = send_bundle(l, (bundle){.first = i, .last = i}, l->now + n->latency_s);
    l->last_from = from;
    l->last_at = l->now;
  }
}

void shoal_links_timer(shoal_links *l, uint32_t node_index, double at, uint32_t what) {
  push(l, fmax(at, l->now), TIMER, node_index, what);
}

/* ---- time ---- */

static bool deliver(shoal_links *l, shoal_links_event *out) {
  uint32_t i = l->delivering;
  if (i == NONE) return false;
  *out = (shoal_links_event){.kind = SHOAL_LINKS_LETTER,
                             .from = l->letters[i].from,
                             .to = l->letters[i].to,
                             .message = l->letters[i].message};
  l->delivering = l->letters[i].next;
  free_letter(l, i);
  return true;
}

/* The last byte has passed the receiver's link: it arrives a little later. False: it was cut. */
static bool pass(shoal_links *l, uint32_t index, shoal_links_event *out) {
  transfer *t = &l->transfers[index];
  bool gone = t->gone;
  if (!gone) {
    *out = (shoal_links_event){.kind = SHOAL_LINKS_SENT, .from = t->from, .to = t->to};
    send_bundle(l, t->bundle, l->now + l->nodes[t->from].latency_s);
    unlist(l, index);
  }
  free_transfer(l, index);
  return !gone;
}

bool shoal_links_next(shoal_links *l, shoal_links_event *out) {
  if (deliver(l, out)) return true;
  while (l->heap_count > 0) {
    entry e = pop(l);
    l->now = e.at;
    switch ((entry_kind)e.kind) {
    case UP_FREE:
      l->nodes[e.index].busy = false;
      use_uplink(l, e.index);
      break;
    case UP_READY:
      if (l->nodes[e.index].ready_timer == e.at) l->nodes[e.index].ready_timer = INFINITY;
      use_uplink(l, e.index);
      break;
    case THROUGH:
      if (pass(l, e.index, out)) return true;
      break;
    case BUNDLE:
      if (l->last_bundle == e.index) l->last_bundle = NONE;
      l->delivering = l->bundles[e.index].first;
      l->bundles[e.index].next_free = l->bundles_free;
      l->bundles_free = e.index;
      return deliver(l, out);
    case TIMER:
      *out = (shoal_links_event){.kind = SHOAL_LINKS_TIMER, .to = e.index, .what = e.what};
      return true;
    }
  }
  return false;
}

double shoal_links_now(const shoal_links *l) { return l->now; }
uint32_t shoal_links_transfers(const shoal_links *l, uint32_t node_index) {
  return l->nodes[node_index].count;
}
uint64_t shoal_links_waiting(const shoal_links *l) { return l->waiting; }
double shoal_links_moved(const shoal_links *l, uint32_t node_index) { return l->nodes[node_index].moved; }
