/* roster.c: see roster.h. With 10,000 entries a walk is some 30 steps. */
#include "proto/roster.h"

#include <stddef.h>

#include "base/assert.h"

typedef shoal_roster_entry entry;

/* A serial's bits well mixed, so that the tree is balanced whatever the order of coming. */
static uint64_t weight_of(uint64_t serial) {
  uint64_t x = serial + 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static bool before(const entry *a, const entry *b) {
  return a->number != b->number ? a->number < b->number : a->serial < b->serial;
}

static void renew(entry *e) {
  e->largest = e->amount;
  if (e->left != NULL && e->left->largest > e->largest) e->largest = e->left->largest;
  if (e->right != NULL && e->right->largest > e->largest) e->largest = e->right->largest;
}

/* Cuts a tree in two: what stands before `at`, and the rest. */
static void split(entry *root, const entry *at, entry **less, entry **rest) {
  if (root == NULL) {
    *less = *rest = NULL;
  } else if (before(root, at)) {
    split(root->right, at, &root->right, rest);
    renew(root);
    *less = root;
  } else {
    split(root->left, at, less, &root->left);
    renew(root);
    *rest = root;
  }
}

/* All of `less` stands before all of `rest`. */
static entry *merge(entry *less, entry *rest) {
  if (less == NULL) return rest;
  if (rest == NULL) return less;
  if (less->weight >= rest->weight) {
    less->right = merge(less->right, rest);
    renew(less);
    return less;
  }
  rest->left = merge(less, rest->left);
  renew(rest);
  return rest;
}

static entry *insert(entry *root, entry *e) {
  if (root == NULL || e->weight > root->weight) {
    split(root, e, &e->left, &e->right);
    renew(e);
    return e;
  }
  entry **side = before(e, root) ? &root->left : &root->right;
  *side = insert(*side, e);
  renew(root);
  return root;
}

static entry *without(entry *root, const entry *e) {
  SHOAL_ASSERT(root != NULL);
  if (root == e) return merge(root->left, root->right);
  entry **side = before(e, root) ? &root->left : &root->right;
  *side = without(*side, e);
  renew(root);
  return root;
}

void shoal_roster_add(shoal_roster *roster, shoal_roster_entry *e) {
  SHOAL_ASSERT(e->in == NULL);
  e->in = roster;
  e->left = e->right = NULL;
  e->weight = weight_of(e->serial);
  roster->root = insert(roster->root, e);
  roster->count++;
}

void shoal_roster_remove(shoal_roster_entry *e) {
  if (e->in == NULL) return;
  e->in->root = without(e->in->root, e);
  e->in->count--;
  e->in = NULL;
}

static bool has(const entry *e, uint64_t amount) { return e != NULL && e->largest >= amount; }

void *shoal_roster_first(const shoal_roster *roster, uint64_t amount) {
  const entry *e = roster->root;
  if (!has(e, amount)) return NULL;
  for (;;) {
    if (has(e->left, amount))
      e = e->left;
    else if (e->amount >= amount)
      return e->owner;
    else
      e = e->right;
  }
}

void *shoal_roster_last(const shoal_roster *roster, uint64_t amount) {
  const entry *e = roster->root;
  if (!has(e, amount)) return NULL;
  for (;;) {
    if (has(e->right, amount))
      e = e->right;
    else if (e->amount >= amount)
      return e->owner;
    else
      e = e->left;
  }
}

static uint32_t count_below(const entry *e, uint64_t amount, uint32_t most) {
  if (most == 0 || !has(e, amount)) return 0;
  uint32_t count = e->amount >= amount;
  count += count_below(e->left, amount, most - count);
  return count + count_below(e->right, amount, most - count);
}

uint32_t shoal_roster_count(const shoal_roster *roster, uint64_t amount, uint32_t most) {
  return count_below(roster->root, amount, most);
}
