/* roster.h: an ordered list that quickly finds its first or last entry with enough of something.
 *
 * Every entry has a rank, by which the list is ordered (number, then serial), and an amount. "The first with
 * an amount of at least m" takes a walk from the root to a leaf: a treap whose nodes know the largest amount
 * below them. Its shape follows from the serials alone, so equal calls give equal answers.
 *
 * Ownership: entries are the caller's, embedded in what they stand for, and are in at most one roster at a
 * time. Nothing here allocates. Threads: one. */
#ifndef SHOAL_PROTO_ROSTER_H
#define SHOAL_PROTO_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct shoal_roster shoal_roster;

typedef struct shoal_roster_entry {
  uint64_t number, serial; /* its rank; no two entries of a roster have the same */
  uint64_t amount;
  void *owner; /* what it stands for; the caller's */
  /* the roster's own */
  shoal_roster *in; /* NULL: in none */
  struct shoal_roster_entry *left, *right;
  uint64_t largest; /* amount, of this one and all below */
  uint64_t weight;  /* no entry weighs more than the one above it */
} shoal_roster_entry;

struct shoal_roster { /* all zero: empty */
  shoal_roster_entry *root;
  uint32_t count;
};

/* The entry's rank, amount and owner are set and stay as they are until it is removed. */
void shoal_roster_add(shoal_roster *roster, shoal_roster_entry *entry);
void shoal_roster_remove(shoal_roster_entry *entry); /* nothing when it is in none */

/* The owner of the first or last entry whose amount is at least this; NULL when there is none. */
void *shoal_roster_first(const shoal_roster *roster, uint64_t amount);
void *shoal_roster_last(const shoal_roster *roster, uint64_t amount);
/* How many have at least this amount; stops counting at `most`. */
uint32_t shoal_roster_count(const shoal_roster *roster, uint64_t amount, uint32_t most);

#endif
