/* Tokens, roles, limits and origins: who gets in, and who does not. */
#include "nn/in_folder.h"

#include <math.h>

#include "base/hash.h"
#include "base/random.h"
#include "base/text.h"
#include "server/access.h"

static const double NOW = 1.8e9; /* wall time */
static const char FAR[] = "192.0.2.7";

typedef struct world {
  shoal_store *store;
  shoal_access *access;
} world;

static void open_world(world *w, shoal_role_level open) {
  shoal_error err;
  if (shoal_store_open(&w->store, "store.sqlite", &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_access_config config = {.store = w->store, .open = open};
  assert_int_equal(shoal_access_create(&w->access, &config, &err), SHOAL_OK);
}

static void close_world(world *w) {
  shoal_access_destroy(w->access);
  shoal_store_close(w->store);
}

static uint64_t add_job(world *w) {
  shoal_job_row row = {
      .name = "job", .host = "Ann", .reason = "", .spec = "{}", .progress = "{}", .created = NOW};
  uint64_t id;
  shoal_error err;
  if (shoal_store_add_job(w->store, &row, &id, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return id;
}

static uint64_t mint(world *w, shoal_role_level level, const char *name, uint64_t job, double days,
                     char token[SHOAL_TOKEN_CHARS + 1]) {
  uint64_t id;
  shoal_error err;
  if (shoal_access_mint(w->access, level, name, job, days, NOW, token, &id, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
  return id;
}

/* An answer to "Bearer TOKEN" from an address that has not asked before. */
static int ask_at(world *w, const char *header, double now, shoal_caller *out) {
  static uint32_t next;
  char address[32];
  uint32_t retry_s;
  snprintf(address, sizeof address, "10.0.%u.%u", next / 250, next % 250);
  next++;
  return shoal_access_ask(w->access, header, address, now, 0, out, &retry_s);
}

static void roles_have_names(void **state) {
  (void)state;
  for (int level = SHOAL_VIEWER; level <= SHOAL_ADMIN; level++) {
    shoal_role_level read;
    assert_true(shoal_role_level_parse(shoal_role_level_name((shoal_role_level)level), &read));
    assert_int_equal(read, level);
  }
  shoal_role_level read = SHOAL_HOST;
  assert_string_equal(shoal_role_level_name(SHOAL_NOBODY), "nobody");
  static const char *const wrong[] = {"nobody", "", "Admin", "admin ", "root"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_false(shoal_role_level_parse(wrong[i], &read));
  assert_int_equal(read, SHOAL_HOST);
}

static void a_token_says_who_asks(void **state) {
  (void)state;
  world w;
  open_world(&w, SHOAL_NOBODY);
  uint64_t job = add_job(&w);
  char host[SHOAL_TOKEN_CHARS + 1], guest[SHOAL_TOKEN_CHARS + 1], header[64];
  uint64_t host_id = mint(&w, SHOAL_HOST, "Ann", 0, 0, host);
  uint64_t guest_id = mint(&w, SHOAL_VOLUNTEER, "the lab", job, 1, guest);
  assert_int_equal(strlen(host), SHOAL_TOKEN_CHARS);
  assert_string_not_equal(host, guest);
  shoal_caller caller;
  snprintf(header, sizeof header, "Bearer %s", host);
  assert_int_equal(ask_at(&w, header, NOW, &caller), 0);
  assert_int_equal(caller.level, SHOAL_HOST);
  assert_int_equal(caller.token, host_id);
  assert_int_equal(caller.job, 0);
  assert_string_equal(caller.name, "Ann");
  snprintf(header, sizeof header, "bearer %s", guest); /* the scheme's case does not matter */
  assert_int_equal(ask_at(&w, header, NOW + 86399, &caller), 0);
  assert_int_equal(caller.level, SHOAL_VOLUNTEER);
  assert_int_equal(caller.token, guest_id);
  assert_int_equal(caller.job, job);
  /* A day later it is of no use any more, and the store never had the token. */
  assert_int_equal(ask_at(&w, header, NOW + 86400, &caller), 401);
  assert_int_equal(caller.level, SHOAL_NOBODY);
  assert_int_equal(caller.token, 0);
  char command[128];
  snprintf(command, sizeof command, "cat store.sqlite* | grep -q -a -e %s", host);
  assert_int_not_equal(system(command), 0);
  char hash[SHOAL_SHA256_HEX];
  shoal_sha256_hex(host, SHOAL_TOKEN_CHARS, hash);
  snprintf(command, sizeof command, "cat store.sqlite* | grep -q -a -e %s", hash);
  assert_int_equal(system(command), 0);
  close_world(&w);
}

static void a_deleted_token_is_of_no_use(void **state) {
  (void)state;
  world w;
  open_world(&w, SHOAL_NOBODY);
  char token[SHOAL_TOKEN_CHARS + 1], header[64];
  uint64_t id = mint(&w, SHOAL_ADMIN, "Ann", 0, 0, token);
  shoal_caller caller;
  snprintf(header, sizeof header, "Bearer %s", token);
  assert_int_equal(ask_at(&w, header, NOW, &caller), 0);
  assert_int_equal(shoal_store_delete_token(w.store, id, NULL), SHOAL_OK);
  shoal_access_forget(w.access, id);
  assert_int_equal(ask_at(&w, header, NOW, &caller), 401);
  close_world(&w);
}

static void without_a_token_the_server_is_as_open_as_it_says(void **state) {
  (void)state;
  static const shoal_role_level levels[] = {SHOAL_NOBODY, SHOAL_VIEWER, SHOAL_ADMIN};
  for (int i = 0; i < 3; i++) {
    world w;
    shoal_caller caller;
    open_world(&w, levels[i]);
    assert_int_equal(ask_at(&w, "", NOW, &caller), 0);
    assert_int_equal(caller.level, levels[i]);
    assert_int_equal(caller.token, 0);
    assert_string_equal(caller.name, "anyone");
    uint32_t retry_s;
    assert_int_equal(shoal_access_ask(w.access, "", "127.0.0.1", NOW, 0, &caller, &retry_s), 0);
    assert_string_equal(caller.name, "local");
    close_world(&w);
  }
}

/* A wrong token is refused even where no token at all would do. */
static void any_other_header_is_refused(void **state) {
  (void)state;
  world w;
  open_world(&w, SHOAL_ADMIN);
  char token[SHOAL_TOKEN_CHARS + 1], header[128];
  mint(&w, SHOAL_ADMIN, "Ann", 0, 0, token);
  shoal_caller caller;
  static const char *const forms[] = {"%s",         "Bearer%s",   "Bearer  %s", " Bearer %s",
                                      "Bearer %s ", "Bearer\t%s", "Bearer %sA", "Bearer =%s",
                                      "Basic %s",   "Bearer",     "Bearer ",    "Bearer %s\n"};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    const char *place = strstr(forms[i], "%s");
    snprintf(header, sizeof header, "%.*s%s%s", place ? (int)(place - forms[i]) : 100, forms[i],
             place ? token : "", place ? place + 2 : "");
    if (ask_at(&w, header, NOW, &caller) != 401) fail_msg("'%s' was let in", header);
    assert_int_equal(caller.level, SHOAL_NOBODY);
  }
  close_world(&w);
}

/* Any change of any character makes it another token: also of the bits of the last one that stand for
 * nothing. */
static void every_character_of_a_token_counts(void **state) {
  (void)state;
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/= ";
  world w;
  open_world(&w, SHOAL_NOBODY);
  char token[SHOAL_TOKEN_CHARS + 1], header[64];
  mint(&w, SHOAL_ADMIN, "Ann", 0, 0, token);
  shoal_caller caller;
  for (int i = 0; i < SHOAL_TOKEN_CHARS; i++) {
    for (size_t d = 0; d < sizeof digits - 1; d += i == SHOAL_TOKEN_CHARS - 1 ? 1 : 7) {
      snprintf(header, sizeof header, "Bearer %s", token);
      header[7 + i] = digits[d];
      int wanted = digits[d] == token[i] ? 0 : 401;
      assert_int_equal(ask_at(&w, header, NOW, &caller), wanted);
    }
  }
  close_world(&w);
}

/* 132 bits are written, the last four of them zero; all others are sometimes one and sometimes zero. */
static void tokens_are_random_in_every_bit(void **state) {
  (void)state;
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  enum { TOKENS = 64 };
  int ones[SHOAL_TOKEN_CHARS][6] = {{0}};
  world w;
  open_world(&w, SHOAL_NOBODY);
  for (int t = 0; t < TOKENS; t++) {
    char token[SHOAL_TOKEN_CHARS + 1];
    mint(&w, SHOAL_VIEWER, "guest", 0, 0, token);
    for (int i = 0; i < SHOAL_TOKEN_CHARS; i++) {
      const char *digit = strchr(digits, token[i]);
      assert_true(digit != NULL && *digit != 0);
      for (int bit = 0; bit < 6; bit++) ones[i][bit] += (digit - digits) >> bit & 1;
    }
  }
  for (int i = 0; i < SHOAL_TOKEN_CHARS; i++) {
    for (int bit = 0; bit < 6; bit++) {
      bool padding = i == SHOAL_TOKEN_CHARS - 1 && bit < 4;
      if (padding)
        assert_int_equal(ones[i][bit], 0);
      else
        assert_true(ones[i][bit] > 0 && ones[i][bit] < TOKENS); /* else once in 2^56 */
    }
  }
  close_world(&w);
}

static void names_of_hosts_are_had_once(void **state) {
  (void)state;
  world w;
  shoal_error err;
  uint64_t id;
  open_world(&w, SHOAL_NOBODY);
  char token[SHOAL_TOKEN_CHARS + 1];
  uint64_t ann = mint(&w, SHOAL_HOST, "Ann", 0, 1, token);
  assert_int_equal(shoal_access_mint(w.access, SHOAL_HOST, "Ann", 0, 0, NOW, token, &id, &err),
                   SHOAL_CONFLICT);
  assert_string_equal(token, "");
  assert_int_equal(shoal_access_mint(w.access, SHOAL_ADMIN, "Ann", 0, 0, NOW, token, &id, &err),
                   SHOAL_CONFLICT);
  static const char *const nobodys[] = {"local", "anyone"};
  for (int i = 0; i < 2; i++)
    assert_int_equal(shoal_access_mint(w.access, SHOAL_HOST, nobodys[i], 0, 0, NOW, token, &id, &err),
                     SHOAL_CONFLICT);
  mint(&w, SHOAL_VOLUNTEER, "Ann", 0, 0, token);
  mint(&w, SHOAL_VOLUNTEER, "Ann", 0, 0, token);
  mint(&w, SHOAL_HOST, "Bob", 0, 0, token);
  /* When it is expired, or gone, the same host may have a new one. */
  assert_int_equal(shoal_access_mint(w.access, SHOAL_HOST, "Ann", 0, 1, NOW + 86400, token, &id, &err),
                   SHOAL_OK);
  assert_int_equal(shoal_store_delete_token(w.store, ann, NULL), SHOAL_NOT_FOUND); /* it is gone with that */
  assert_int_equal(shoal_store_delete_token(w.store, id, NULL), SHOAL_OK);
  mint(&w, SHOAL_ADMIN, "Ann", 0, 0, token);
  close_world(&w);
}

static size_t tokens_there(world *w) {
  shoal_token_row rows[64];
  size_t count;
  assert_int_equal(shoal_store_tokens(w->store, 0, rows, 64, &count, NULL), SHOAL_OK);
  shoal_token_rows_free(rows, count);
  return count;
}

/* Numbered names, each with a secret of its own; all of them, or none where one cannot be. */
static void many_are_made_at_once_or_none(void **state) {
  (void)state;
  world w;
  shoal_error err;
  enum { MANY = 20 };
  char tokens[MANY][SHOAL_TOKEN_CHARS + 1], token[SHOAL_TOKEN_CHARS + 1], name[SHOAL_CALLER_NAME_MAX];
  uint64_t ids[MANY];
  open_world(&w, SHOAL_NOBODY);
  assert_int_equal(
      shoal_access_mint_many(w.access, SHOAL_VOLUNTEER, "lab", 0, 3, NOW, MANY, tokens, ids, &err), SHOAL_OK);
  assert_int_equal(tokens_there(&w), MANY);
  for (uint32_t i = 0; i < MANY; i++) {
    shoal_token_row row;
    assert_int_equal(shoal_store_token_by_id(w.store, ids[i], &row, &err), SHOAL_OK);
    shoal_access_numbered("lab", i + 1, name);
    assert_string_equal(row.name, name);
    assert_true(row.expires == NOW + 3 * 86400.0);
    shoal_token_rows_free(&row, 1);
    for (uint32_t j = 0; j < i; j++) assert_string_not_equal(tokens[i], tokens[j]);
  }
  assert_string_equal(name, "lab 20");
  mint(&w, SHOAL_HOST, "team 7", 0, 0, token);
  static const struct {
    shoal_role_level level;
    const char *name;
    uint64_t job;
    uint32_t count;
    shoal_status status;
  } refused[] = {
      {SHOAL_HOST, "team", 0, MANY, SHOAL_CONFLICT}, /* the seventh is taken */
      {SHOAL_VIEWER, "x", 77, 2, SHOAL_NOT_FOUND},
      {SHOAL_VIEWER, "a/b", 0, 2, SHOAL_INVALID},
      {SHOAL_VIEWER, "x", 0, 0, SHOAL_INVALID},
      {SHOAL_VIEWER, "x", 0, SHOAL_TOKENS_AT_ONCE_MAX + 1, SHOAL_INVALID},
      {SHOAL_VIEWER, "sixty characters are too long where a number has to follow...", 0, 2, SHOAL_INVALID}};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    shoal_status status = shoal_access_mint_many(w.access, refused[i].level, refused[i].name, refused[i].job,
                                                 0, NOW, refused[i].count, tokens, ids, &err);
    if (status != refused[i].status) fail_msg("%zu: %s", i, err.text);
    assert_int_equal(tokens_there(&w), MANY + 1);
  }
  assert_int_equal(shoal_access_mint_many(w.access, SHOAL_HOST, "team", 0, 0, NOW, 6, tokens, ids, &err),
                   SHOAL_OK);
  close_world(&w);
}

static void what_makes_no_token_is_refused(void **state) {
  (void)state;
  world w;
  shoal_error err;
  open_world(&w, SHOAL_NOBODY);
  uint64_t job = add_job(&w), id;
  char token[SHOAL_TOKEN_CHARS + 1], long_name[SHOAL_CALLER_NAME_MAX + 1];
  memset(long_name, 'x', sizeof long_name - 1);
  long_name[sizeof long_name - 1] = 0;
  static const char *const names[] = {"", ".x", "a/b", "a\nb", "\xff"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    assert_int_equal(shoal_access_mint(w.access, SHOAL_VIEWER, names[i], 0, 0, NOW, token, &id, &err),
                     SHOAL_INVALID);
  assert_int_equal(shoal_access_mint(w.access, SHOAL_VIEWER, long_name, 0, 0, NOW, token, &id, &err),
                   SHOAL_INVALID);
  assert_int_equal(shoal_access_mint(w.access, SHOAL_NOBODY, "x", 0, 0, NOW, token, &id, &err),
                   SHOAL_INVALID);
  assert_int_equal(shoal_access_mint(w.access, SHOAL_HOST, "x", job, 0, NOW, token, &id, &err),
                   SHOAL_INVALID);
  static const double days[] = {-1, 1e9, NAN, INFINITY};
  for (size_t i = 0; i < sizeof days / sizeof *days; i++)
    assert_int_equal(shoal_access_mint(w.access, SHOAL_VIEWER, "x", 0, days[i], NOW, token, &id, &err),
                     SHOAL_INVALID);
  assert_int_not_equal(shoal_access_mint(w.access, SHOAL_VIEWER, "x", job + 1, 0, NOW, token, &id, &err),
                       SHOAL_OK);
  assert_string_equal(token, "");
  close_world(&w);
}

static void what_is_whose_goes_by_more_than_a_name(void **state) {
  (void)state;
  const shoal_caller ann = {.level = SHOAL_HOST, .token = 1, .name = "Ann"};
  const shoal_caller bob = {.level = SHOAL_HOST, .token = 2, .name = "Bob"};
  const shoal_caller viewer = {.level = SHOAL_VIEWER, .token = 3, .name = "Ann"};
  const shoal_caller volunteer = {.level = SHOAL_VOLUNTEER, .token = 4, .name = "local"};
  const shoal_caller guest = {.level = SHOAL_VOLUNTEER, .token = 5, .job = 7, .name = "x"};
  const shoal_caller admin = {.level = SHOAL_ADMIN, .token = 6, .name = "root"};
  const shoal_caller here = {.level = SHOAL_HOST, .name = "local"};
  const shoal_caller there = {.level = SHOAL_HOST, .name = "anyone"};
  assert_true(shoal_access_owns(&ann, "Ann") && shoal_access_owns(&here, "local"));
  assert_false(shoal_access_owns(&bob, "Ann") || shoal_access_owns(&viewer, "Ann") ||
               shoal_access_owns(&volunteer, "local") || shoal_access_owns(&there, "local") ||
               shoal_access_owns(&admin, "Ann"));
  assert_true(shoal_access_invited(&ann, 7, "Ann") && shoal_access_invited(&guest, 7, "Ann") &&
              shoal_access_invited(&admin, 7, "Ann"));
  assert_false(shoal_access_invited(&bob, 7, "Ann") || shoal_access_invited(&viewer, 7, "Ann") ||
               shoal_access_invited(&guest, 8, "Ann") || shoal_access_invited(&viewer, 0, "Ann"));
  assert_true(shoal_access_may_see(&viewer, 7, false, "Ann") && shoal_access_may_see(&guest, 7, true, "Ann"));
  assert_false(shoal_access_may_see(&viewer, 7, true, "Ann") ||
               shoal_access_may_see(&guest, 8, false, "Ann"));
}

static void an_admin_is_missed_when_no_token_of_one_is_valid(void **state) {
  (void)state;
  world w;
  bool has;
  char token[SHOAL_TOKEN_CHARS + 1];
  open_world(&w, SHOAL_NOBODY);
  mint(&w, SHOAL_HOST, "Ann", 0, 0, token);
  assert_int_equal(shoal_access_has_admin(w.access, NOW, &has, NULL), SHOAL_OK);
  assert_false(has);
  for (int i = 0; i < 300; i++) mint(&w, SHOAL_VIEWER, "x", 0, 0, token); /* more than are read at once */
  mint(&w, SHOAL_ADMIN, "Bob", 0, 1, token);
  assert_int_equal(shoal_access_has_admin(w.access, NOW, &has, NULL), SHOAL_OK);
  assert_true(has);
  assert_int_equal(shoal_access_has_admin(w.access, NOW + 86400, &has, NULL), SHOAL_OK);
  assert_false(has);
  close_world(&w);
}

/* What is remembered of a token is right until it expires or is forgotten. */
static void a_token_is_remembered_for_a_little_while(void **state) {
  (void)state;
  world w;
  char token[SHOAL_TOKEN_CHARS + 1], header[64];
  shoal_caller caller;
  uint32_t retry_s;
  open_world(&w, SHOAL_NOBODY);
  uint64_t id = mint(&w, SHOAL_HOST, "Ann", 0, 1, token);
  snprintf(header, sizeof header, "Bearer %s", token);
  assert_int_equal(shoal_access_ask(w.access, header, FAR, NOW, 10, &caller, &retry_s), 0);
  assert_int_equal(shoal_store_delete_token(w.store, id, NULL), SHOAL_OK); /* behind its back */
  assert_int_equal(shoal_access_ask(w.access, header, FAR, NOW, 14, &caller, &retry_s), 0);
  assert_true(caller.token == id && caller.level == SHOAL_HOST && caller.expires == NOW + 86400);
  assert_int_equal(shoal_access_ask(w.access, header, FAR, NOW + 86400, 14, &caller, &retry_s), 401);
  assert_int_equal(shoal_access_ask(w.access, header, FAR, NOW, 16, &caller, &retry_s), 401);
  close_world(&w);
}

/* ---- limits ---- */

static void what_is_asked_often_counts_for_nothing_with_a_right_token(void **state) {
  (void)state;
  static const char wrong[] = "Bearer AAAAAAAAAAAAAAAAAAAAAA";
  world w;
  char token[SHOAL_TOKEN_CHARS + 1], header[64];
  shoal_caller caller;
  uint32_t retry_s;
  int let_in[3] = {0};
  open_world(&w, SHOAL_VOLUNTEER);
  mint(&w, SHOAL_VOLUNTEER, "lab", 0, 0, token);
  snprintf(header, sizeof header, "Bearer %s", token);
  for (int i = 0; i < 1000; i++) {
    let_in[0] += shoal_access_ask_often(w.access, header, FAR, NOW, 10, &caller, &retry_s) == 0;
    let_in[1] += shoal_access_ask_often(w.access, "", "192.0.2.9", NOW, 10, &caller, &retry_s) == 0;
    let_in[2] += shoal_access_ask_often(w.access, wrong, "192.0.2.10", NOW, 10, &caller, &retry_s) != 429;
  }
  assert_int_equal(let_in[0], 1000);
  assert_int_equal(let_in[1], 200);
  assert_int_equal(let_in[2], 20);
  /* Nor are other requests from there made to wait. */
  assert_int_equal(shoal_access_ask(w.access, header, FAR, NOW, 10, &caller, &retry_s), 0);
  close_world(&w);
}

/* So many of `tries` requests at one time are not told to wait. */
static int let_in(world *w, const char *header, const char *address, double clock, int tries) {
  int count = 0;
  for (int i = 0; i < tries; i++) {
    shoal_caller caller;
    uint32_t retry_s = 0;
    int answer = shoal_access_ask(w->access, header, address, NOW, clock, &caller, &retry_s);
    assert_int_equal(answer == 429, retry_s > 0);
    count += answer != 429;
  }
  return count;
}

static void who_asks_too_often_has_to_wait(void **state) {
  (void)state;
  world w;
  open_world(&w, SHOAL_VIEWER);
  assert_int_equal(let_in(&w, "", FAR, 100, 500), 200);
  assert_int_equal(let_in(&w, "", "192.0.2.8", 100, 10), 10); /* others need not */
  assert_int_equal(let_in(&w, "", FAR, 100.5, 500), 25);
  assert_int_equal(let_in(&w, "", FAR, 101.5, 500), 50);
  assert_int_equal(let_in(&w, "", FAR, 1000, 500), 200);  /* it does not add up for ever */
  assert_int_equal(let_in(&w, "", FAR, 900, 500), 0);     /* a clock that goes back gives nothing */
  assert_int_equal(let_in(&w, "", FAR, 1000.5, 500), 25); /* and takes nothing */
  static const char *const loopback[] = {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", ""};
  for (int i = 0; i < 5; i++) assert_int_equal(let_in(&w, "", loopback[i], 100, 500), 500);
  close_world(&w);
}

/* Over any time, no more than the rate and what may come at once; and who waits as told is let in. */
static void the_rate_holds_over_any_time(void **state) {
  (void)state;
  world w;
  open_world(&w, SHOAL_VIEWER);
  shoal_key key = shoal_key_make(5, SHOAL_FOR_SPLIT, 1, 0);
  double clock = 10;
  int count = 0, told = 0;
  for (uint64_t i = 0; i < 20000; i++) {
    shoal_caller caller;
    uint32_t retry_s;
    clock += 0.01 * shoal_random_uniform(key, i); /* four times the rate */
    int answer = shoal_access_ask(w.access, "", FAR, NOW, clock, &caller, &retry_s);
    count += answer == 0;
    told += answer == 429;
    assert_true(count <= 200 + 50 * (clock - 10) + 1);
    if (answer == 429 && i % 1000 == 0) {
      clock += retry_s;
      assert_int_equal(shoal_access_ask(w.access, "", FAR, NOW, clock, &caller, &retry_s), 0);
      count++;
    }
  }
  assert_true(told > 1000 && count > 50 * (clock - 10) - 50);
  close_world(&w);
}

static void wrong_tokens_are_counted_and_right_ones_let_in(void **state) {
  (void)state;
  static const char wrong[] = "Bearer AAAAAAAAAAAAAAAAAAAAAA";
  world w;
  open_world(&w, SHOAL_NOBODY);
  char token[SHOAL_TOKEN_CHARS + 1], header[64];
  mint(&w, SHOAL_VOLUNTEER, "lab", 0, 0, token);
  snprintf(header, sizeof header, "Bearer %s", token);
  assert_int_equal(let_in(&w, wrong, FAR, 10, 100), 20);
  assert_int_equal(let_in(&w, "nonsense", FAR, 10, 10), 0);
  shoal_caller caller;
  uint32_t retry_s;
  assert_int_equal(shoal_access_ask(w.access, header, FAR, NOW, 10, &caller, &retry_s), 0);
  assert_int_equal(let_in(&w, wrong, FAR, 13, 10), 1);
  assert_int_equal(let_in(&w, wrong, "127.0.0.1", 10, 100), 20); /* also on this machine */
  assert_int_equal(let_in(&w, header, "127.0.0.1", 10, 100), 100);
  close_world(&w);
}

static void an_address_of_ipv6_counts_with_its_neighbours(void **state) {
  (void)state;
  world w;
  open_world(&w, SHOAL_VIEWER);
  int count = 0;
  for (int i = 0; i < 500; i++) {
    char address[48];
    snprintf(address, sizeof address, "2001:db8:1:2:%x::%x", i * 77, i);
    count += let_in(&w, "", address, 10, 1);
  }
  assert_int_equal(count, 200);
  assert_int_equal(let_in(&w, "", "2001:db8:1:3::1", 10, 500), 200);
  assert_int_equal(let_in(&w, "", "::ffff:198.51.100.1", 10, 150), 150);
  assert_int_equal(let_in(&w, "", "198.51.100.1", 10, 150), 50); /* the same one */
  close_world(&w);
}

/* New addresses take the places of those that were not heard of for longest, not of those who just asked too
 * often: 500 are one for each set of places, and eight would have to fall on the same. */
static void more_addresses_than_there_is_room_for(void **state) {
  (void)state;
  static const char *const busy[] = {"192.0.2.7", "192.0.2.8", "192.0.2.9"};
  world w;
  open_world(&w, SHOAL_VIEWER);
  for (int i = 0; i < 20500; i++) {
    char address[32];
    snprintf(address, sizeof address, "10.%d.%d.1", i / 250, i % 250);
    for (int k = 0; k < 3 && i == 20000; k++)
      assert_int_equal(let_in(&w, "", busy[k], 10 + i * 1e-5, 500), 200);
    assert_int_equal(let_in(&w, "", address, 10 + i * 1e-5, 1), 1);
  }
  for (int k = 0; k < 3; k++) assert_true(let_in(&w, "", busy[k], 10.21, 500) < 2);
  close_world(&w);
}

static void the_audit_log_never_has_the_token(void **state) {
  (void)state;
  char out[SHOAL_CALLER_TEXT_MAX];
  shoal_caller caller = {.level = SHOAL_HOST, .token = 3, .name = "Ann"};
  shoal_access_describe(&caller, FAR, out);
  assert_string_equal(out, "token 3 (Ann) from 192.0.2.7");
  caller = (shoal_caller){.level = SHOAL_ADMIN, .name = "local"};
  shoal_access_describe(&caller, "127.0.0.1", out);
  assert_string_equal(out, "local");
  shoal_access_describe(&caller, FAR, out);
  assert_string_equal(out, "no token, from 192.0.2.7");
  caller = (shoal_caller){.token = UINT64_MAX};
  memset(caller.name, '\n', sizeof caller.name); /* not even a zero at its end */
  shoal_access_describe(&caller, "2001:0db8:1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa", out);
  assert_null(strchr(out, '\n'));
  assert_true(strlen(out) < sizeof out);
}

/* ---- origins ---- */

static void only_own_pages_may_ask(void **state) {
  (void)state;
  static const struct {
    const char *host, *origin;
    bool same;
  } cases[] = {
      {"localhost:8080", "", true},
      {"", "", true},
      {"localhost:8080", "http://localhost:8080", true},
      {"LocalHost:8080", "HTTP://localhost:8080", true},
      {"shoal.example", "https://shoal.example", true},
      {"shoal.example:443", "https://shoal.example", true},
      {"shoal.example", "https://shoal.example:443", true},
      {"shoal.example", "http://shoal.example:80", true},
      {"[::1]:8080", "http://[::1]:8080", true},
      {"localhost:8080", "null", false},
      {"localhost:8080", "http://localhost", false},
      {"localhost:8080", "http://localhost:8081", false},
      {"localhost:8080", "http://evil.example", false},
      {"localhost:8080", "http://localhost:8080.evil.example", false},
      {"localhost:8080", "http://evil.example/localhost:8080", false},
      {"localhost:8080", "http://localhost:8080/", false},
      {"localhost:8080", "http://user@localhost:8080", false},
      {"localhost:8080", "file://localhost:8080", false},
      {"localhost:8080", "localhost:8080", false},
      {"localhost:8080", "http://", false},
      {"", "http://", false},
      {"", "http://localhost", false},
      {"shoal.example:80", "https://shoal.example", false},
      {"a b", "http://a b", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (shoal_access_same_origin(cases[i].host, cases[i].origin) != cases[i].same)
      fail_msg("host '%s', origin '%s'", cases[i].host, cases[i].origin);
  }
}

static void links_begin_where_the_server_was_found(void **state) {
  (void)state;
  static const struct {
    const char *url, *host, *origin, *base;
  } cases[] = {
      {"http://10.0.0.5:8080", "localhost:8080", "", "http://10.0.0.5:8080"},
      {"http://10.0.0.5:8080", "", "", "http://10.0.0.5:8080"},
      {"http://10.0.0.5:8080", "a b", "", "http://10.0.0.5:8080"},
      {"http://10.0.0.5:8080", "Shoal.example:8080", "", "http://shoal.example:8080"},
      {"https://10.0.0.5:8080", "shoal.example", "", "https://shoal.example"},
      {"http://10.0.0.5:8080", "shoal.example", "https://shoal.example", "https://shoal.example"},
      {"http://10.0.0.5:8080", "shoal.example", "https://evil.example", "http://shoal.example"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_text base = {0};
    shoal_access_link_base(&base, cases[i].url, cases[i].host, cases[i].origin);
    assert_string_equal(base.bytes, cases[i].base);
    shoal_text_release(&base);
  }
}

static void loopback_names_are_local(void **state) {
  (void)state;
  static const char *const local[] = {"localhost", "localhost:8080", "LOCALHOST",
                                      "127.0.0.1", "127.0.0.1:80",   "127.1.2.3",
                                      "[::1]",     "[::1]:8080",     "a.localhost:1"};
  static const char *const others[] = {"",
                                       "evil.example",
                                       "localhost.evil.example",
                                       "127.0.0.1.evil.example",
                                       "evillocalhost",
                                       ".localhost",
                                       "128.0.0.1",
                                       "192.0.2.7:8080",
                                       "0.0.0.0",
                                       "[::1]evil",
                                       "[::2]",
                                       "::1",
                                       "localhost:x",
                                       "localhost:80:90",
                                       "localhost:99999",
                                       "127.1",
                                       "localhost "};
  for (size_t i = 0; i < sizeof local / sizeof *local; i++)
    if (!shoal_access_host_is_local(local[i])) fail_msg("'%s' is local", local[i]);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (shoal_access_host_is_local(others[i])) fail_msg("'%s' is not local", others[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(roles_have_names),
      IN_FOLDER(a_token_says_who_asks),
      IN_FOLDER(a_deleted_token_is_of_no_use),
      IN_FOLDER(without_a_token_the_server_is_as_open_as_it_says),
      IN_FOLDER(any_other_header_is_refused),
      IN_FOLDER(every_character_of_a_token_counts),
      IN_FOLDER(tokens_are_random_in_every_bit),
      IN_FOLDER(names_of_hosts_are_had_once),
      cmocka_unit_test(what_is_whose_goes_by_more_than_a_name),
      IN_FOLDER(an_admin_is_missed_when_no_token_of_one_is_valid),
      IN_FOLDER(a_token_is_remembered_for_a_little_while),
      IN_FOLDER(what_is_asked_often_counts_for_nothing_with_a_right_token),
      IN_FOLDER(many_are_made_at_once_or_none),
      IN_FOLDER(what_makes_no_token_is_refused),
      IN_FOLDER(who_asks_too_often_has_to_wait),
      IN_FOLDER(the_rate_holds_over_any_time),
      IN_FOLDER(wrong_tokens_are_counted_and_right_ones_let_in),
      IN_FOLDER(an_address_of_ipv6_counts_with_its_neighbours),
      IN_FOLDER(more_addresses_than_there_is_room_for),
      cmocka_unit_test(the_audit_log_never_has_the_token),
      cmocka_unit_test(only_own_pages_may_ask),
      cmocka_unit_test(links_begin_where_the_server_was_found),
      cmocka_unit_test(loopback_names_are_local),
  };
  return RUN_TESTS(tests);
}
