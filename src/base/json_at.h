/* json_at.h: reads fields of JSON that came from outside: files, servers, peers. The tree is cJSON's.
 *
 * Keys are told apart by case. A field that is missing counts as one of another kind. Numbers are doubles, so whole
 * numbers from 2^53 on are refused, whatever their range.
 *
 * Ownership: the tree's. Threads: any. */
#ifndef SHOAL_BASE_JSON_AT_H
#define SHOAL_BASE_JSON_AT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For values that are shown, or checked by the caller: a field of another kind is "", NaN or 0. */
const char *shoal_text_at(const cJSON *json, const char *key);
double shoal_number_at(const cJSON *json, const char *key);
uint64_t shoal_whole_at(const cJSON *json, const char *key); /* 0 also where it is negative */
/* The same text as it may be shown, cut to the size. Returns out. */
const char *shoal_plain_at(const cJSON *json, const char *key, char *out, size_t size);

/* Returns NULL if the field is not a text. */
const char *shoal_find_text(const cJSON *json, const char *key);

/* Each returns false where the field is of another kind or out of its range: a whole number from 0 to `most`, a number
 * from `least` to `most`. *out is then anything. */
bool shoal_read_whole_at(const cJSON *json, const char *key, uint64_t most, uint64_t *out);
bool shoal_read_u32_at(const cJSON *json, const char *key, uint32_t most, uint32_t *out);
bool shoal_read_real_at(const cJSON *json, const char *key, double least, double most, double *out);
bool shoal_read_flag_at(const cJSON *json, const char *key, bool *out);
/* The same for a value in a list; returns false for NULL. */
bool shoal_read_whole(const cJSON *item, uint64_t most, uint64_t *out);

#endif
