/* standings.c: see standings.h. People are few: they are looked for one after the other. */
#include "server/standings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

enum { ROWS_AT_ONCE = 256, WHO_MAX = 192, BANS_TOLD_MAX = 1000 };

struct shoal_standings {
  shoal_store *store;
  const shoal_secret *secret;
  shoal_standing all[SHOAL_STANDINGS_MAX];
  char names[SHOAL_STANDINGS_MAX][WHO_MAX]; /* what their numbers stand for */
  uint64_t blamed_by
      [SHOAL_STANDINGS_MAX];         /* who was the first to blame them, since they were doubted; 0: nobody */
  bool unsaved[SHOAL_STANDINGS_MAX]; /* the store has not heard of what has agreed */
  uint32_t count;
};

static uint64_t number_of(const shoal_standings *s, const char *who) {
  return shoal_secret_number(s->secret, who, strlen(who));
}

/* Where somebody is; `count` when nobody has that number. */
static uint32_t find(const shoal_standings *s, uint64_t who) {
  uint32_t i = 0;
  while (i < s->count && s->all[i].who != who) i++;
  return i;
}

/* A place for somebody new: when there is none left, that of who has least to lose. */
static uint32_t place_for(shoal_standings *s, const char *who) {
  uint64_t number = number_of(s, who);
  uint32_t place = find(s, number);
  if (place < s->count) return place;
  if (s->count < SHOAL_STANDINGS_MAX) {
    place = s->count++;
  } else {
    place = 0;
    for (uint32_t i = 0; i < s->count; i++)
      if (!s->all[i].banned && (s->all[place].banned || s->all[i].agreed < s->all[place].agreed)) place = i;
  }
  if (s->unsaved[place]) shoal_standings_flush(s);
  s->all[place] = (shoal_standing){.who = number};
  s->blamed_by[place] = 0;
  s->unsaved[place] = false;
  snprintf(s->names[place], WHO_MAX, "%s", who);
  return place;
}

static shoal_status read_all(shoal_standings *s, shoal_error *err) {
  shoal_standing_row *rows = calloc(ROWS_AT_ONCE, sizeof *rows);
  if (rows == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status;
  uint64_t after = 0;
  size_t count;
  do {
    status = shoal_store_standings(s->store, false, after, rows, ROWS_AT_ONCE, &count, err);
    for (size_t i = 0; status == SHOAL_OK && i < count; i++) {
      shoal_standing *known = &s->all[place_for(s, rows[i].who)];
      known->agreed = rows[i].agreed;
      known->wrong = rows[i].wrong;
      known->banned = rows[i].banned;
      after = rows[i].id;
    }
    if (status == SHOAL_OK) shoal_standing_rows_free(rows, count);
  } while (status == SHOAL_OK && count == ROWS_AT_ONCE);
  free(rows);
  return status;
}

shoal_status shoal_standings_open(shoal_standings **out, shoal_store *store, const shoal_secret *secret,
                                  shoal_error *err) {
  *out = NULL;
  shoal_standings *s = calloc(1, sizeof *s);
  if (s == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  s->store = store;
  s->secret = secret;
  shoal_status status = read_all(s, err);
  if (status != SHOAL_OK) {
    shoal_standings_close(s);
    return status;
  }
  *out = s;
  return SHOAL_OK;
}

void shoal_standings_close(shoal_standings *s) {
  if (s != NULL) shoal_standings_flush(s);
  free(s);
}

/* Who somebody is, in words. */
static void describe(char who[WHO_MAX], uint64_t token, const char *name, const char *address) {
  char plain[64];
  shoal_text_plain(plain, sizeof plain, name, strlen(name));
  if (token != 0)
    snprintf(who, WHO_MAX, "token %" PRIu64, token);
  else
    snprintf(who, WHO_MAX, "%s at %s", plain[0] != 0 ? plain : "worker", address);
}

uint64_t shoal_standings_meet(shoal_standings *s, uint64_t token, const char *name, const char *address) {
  char who[WHO_MAX];
  describe(who, token, name, address);
  return s->all[place_for(s, who)].who;
}

shoal_standing shoal_standings_get(const shoal_standings *s, uint64_t who) {
  uint32_t place = find(s, who);
  return place < s->count ? s->all[place] : (shoal_standing){.who = who};
}

bool shoal_standings_is_banned(const shoal_standings *s, uint64_t token, const char *name,
                               const char *address) {
  char who[WHO_MAX];
  describe(who, token, name, address);
  uint32_t place = find(s, number_of(s, who));
  return place < s->count && s->all[place].banned;
}

const shoal_standing *shoal_standings_all(const shoal_standings *s, uint32_t *count) {
  *count = s->count;
  return s->all;
}

bool shoal_standings_learn(shoal_standings *s, const shoal_standing *standing, const char *name,
                           const char *reason, uint64_t job) {
  uint32_t place = find(s, standing->who);
  if (place == s->count) return false;    /* somebody who came another way than through the server */
  if (s->all[place].banned) return false; /* why, is known; or this chief has not heard of it yet */
  bool is_new = standing->banned;
  uint64_t doubted = s->all[place].doubted;
  s->all[place] = *standing;
  s->unsaved[place] = false;
  if (standing->doubted < doubted) s->all[place].doubted = doubted; /* it has not heard of that either */
  double now = shoal_clock_wall_seconds();
  char text[SHOAL_STANDING_REASON_MAX + 80], what[2 * SHOAL_STANDING_REASON_MAX + 320];
  snprintf(text, sizeof text, "%.63s: %.95s", name[0] != 0 ? name : "a machine that has left", reason);
  const shoal_standing_row row = {.who = s->names[place],
                                  .agreed = standing->agreed,
                                  .wrong = standing->wrong,
                                  .banned = standing->banned,
                                  .reason = standing->banned ? text : "",
                                  .job = job,
                                  .changed = now};
  (void)shoal_store_put_standing(s->store, &row, NULL);
  snprintf(what, sizeof what, "%s is banned, in job %" PRIu64 ": %s", s->names[place], job, text);
  if (is_new) (void)shoal_store_add_audit(s->store, now, "server", what, NULL);
  return is_new;
}

void shoal_standings_agreed(shoal_standings *s, uint64_t who) {
  uint32_t place = find(s, who);
  if (place == s->count || s->all[place].banned) return;
  s->all[place].agreed++;
  s->unsaved[place] = true;
}

void shoal_standings_flush(shoal_standings *s) {
  for (uint32_t i = 0; i < s->count; i++) {
    const shoal_standing_row row = {.who = s->names[i],
                                    .agreed = s->all[i].agreed,
                                    .wrong = s->all[i].wrong,
                                    .reason = "",
                                    .changed = shoal_clock_wall_seconds()};
    if (s->unsaved[i]) s->unsaved[i] = shoal_store_put_standing(s->store, &row, NULL) != SHOAL_OK;
  }
}

bool shoal_standings_blame(shoal_standings *s, uint64_t who, uint64_t by, shoal_standing *out) {
  uint32_t place = find(s, who);
  if (place == s->count || who == by || find(s, by) == s->count || s->blamed_by[place] == by) return false;
  bool second = s->blamed_by[place] != 0;
  s->blamed_by[place] = second ? 0 : by;
  if (!second || s->all[place].banned) return false;
  s->all[place].doubted = s->all[place].agreed;
  *out = s->all[place];
  return true;
}

/* "token 3 (bob)", as the audit log has it. */
static void write_who(const shoal_standings *s, shoal_json *json, const char *who) {
  static const char prefix[] = "token ";
  size_t length = sizeof prefix - 1;
  uint64_t id;
  shoal_token_row token;
  char text[WHO_MAX + 80];
  bool is_token = strncmp(who, prefix, length) == 0 &&
                  shoal_read_u64(who + length, strlen(who + length), &id) &&
                  shoal_store_token_by_id(s->store, id, &token, NULL) == SHOAL_OK;
  if (is_token) {
    snprintf(text, sizeof text, "%.191s (%.63s)", who, token.name);
    shoal_token_rows_free(&token, 1);
  }
  shoal_json_text(json, "who", is_token ? text : who);
}

shoal_status shoal_standings_write_bans(shoal_standings *s, shoal_json *json, shoal_error *err) {
  size_t count;
  shoal_standing_row *rows = calloc(BANS_TOLD_MAX, sizeof *rows);
  if (rows == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = shoal_store_standings(s->store, true, 0, rows, BANS_TOLD_MAX, &count, err);
  if (status == SHOAL_OK) {
    shoal_json_open(json, NULL, '{');
    shoal_json_open(json, "bans", '[');
    for (size_t i = 0; i < count; i++) {
      shoal_json_open(json, NULL, '{');
      shoal_json_int(json, "id", (int64_t)rows[i].id);
      write_who(s, json, rows[i].who);
      shoal_json_text(json, "reason", rows[i].reason);
      if (rows[i].job > 0)
        shoal_json_int(json, "job", (int64_t)rows[i].job);
      else
        shoal_json_null(json, "job");
      shoal_json_real(json, "time", rows[i].changed);
      shoal_json_close(json, '}');
    }
    shoal_json_close(json, ']');
    shoal_json_close(json, '}');
    shoal_standing_rows_free(rows, count);
  }
  free(rows);
  return status;
}

shoal_status shoal_standings_lift(shoal_standings *s, uint64_t id, const char *by, shoal_standing *out,
                                  shoal_error *err) {
  shoal_standing_row row;
  double now = shoal_clock_wall_seconds();
  shoal_status status = shoal_store_ban(s->store, id, &row, err);
  if (status != SHOAL_OK) return status;
  status = shoal_store_lift_ban(s->store, id, now, err);
  if (status == SHOAL_OK) {
    char what[WHO_MAX + 64];
    uint32_t place = place_for(s, row.who);
    s->all[place] = (shoal_standing){.who = s->all[place].who, .wrong = row.wrong};
    s->unsaved[place] = false;
    *out = s->all[place];
    snprintf(what, sizeof what, "lifts the ban of %s", row.who);
    (void)shoal_store_add_audit(s->store, now, by, what, NULL);
  }
  shoal_standing_rows_free(&row, 1);
  return status;
}
