/* text.c: see text.h. From bytes to tokens, from files to parts, from parts to streams. */
#include "data/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "data/bytes.h"
#include "data/limits.h"

static const char end_of_line[] = "<eos>", unknown[] = "<unk>";

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

void shoal_tokens_init(shoal_tokens *tokens) { *tokens = (shoal_tokens){0}; }

void shoal_tokens_release(shoal_tokens *tokens) {
  shoal_names_release(&tokens->vocabulary);
  free(tokens->all);
  shoal_tokens_init(tokens);
}

shoal_status shoal_tokens_read_fitted(shoal_tokens *tokens, const cJSON *json, shoal_error *err) {
  const cJSON *unit = cJSON_GetObjectItemCaseSensitive(json, "unit");
  if (!cJSON_IsString(unit) ||
      (strcmp(unit->valuestring, "words") != 0 && strcmp(unit->valuestring, "characters") != 0))
    return shoal_fail(err, SHOAL_CORRUPT, "'unit' is not 'words' or 'characters'");
  tokens->unit = strcmp(unit->valuestring, "words") == 0 ? SHOAL_WORDS : SHOAL_CHARACTERS;
  const cJSON *sha256 = cJSON_GetObjectItemCaseSensitive(json, "sha256");
  if (cJSON_IsString(sha256) && strlen(sha256->valuestring) == sizeof tokens->sha256 - 1)
    memcpy(tokens->sha256, sha256->valuestring, sizeof tokens->sha256);
  shoal_status status =
      shoal_names_read(&tokens->vocabulary, cJSON_GetObjectItemCaseSensitive(json, "vocabulary"),
                       SHOAL_VOCABULARY_MAX, "vocabulary", err);
  if (status == SHOAL_OK && tokens->vocabulary.count == 0)
    return shoal_fail(err, SHOAL_CORRUPT, "'vocabulary' is empty");
  return status;
}

void shoal_tokens_write(const shoal_tokens *tokens, shoal_json *json) {
  shoal_json_text(json, "unit", tokens->unit == SHOAL_WORDS ? "words" : "characters");
  shoal_names_write(&tokens->vocabulary, json, "vocabulary");
  shoal_json_text(json, "sha256", tokens->sha256);
}

/* ---- from bytes to tokens ----------------------------------------------------------- */

/* Walks over a text, one token after the other. */
typedef struct scanner {
  shoal_text_unit unit;
  const char *name;
  const char *at, *end, *line_start;
  uint64_t line;
  bool whole;     /* the text's end is that of its last line, even without a line feed */
  bool line_open; /* something stands in this line */
  const char *token;
  size_t length;
} scanner;

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

static shoal_status fail_scan(const scanner *s, shoal_status status, const char *what, shoal_error *err) {
  return shoal_fail(err, status, "%s:%" PRIu64 ":%td: %s", s->name, s->line, s->at - s->line_start + 1, what);
}

static void next_line(scanner *s) {
  s->line++;
  s->line_start = s->at;
  s->line_open = false;
}

/* The next token; *more is false at the end. */
static shoal_status scan(scanner *s, bool *more, shoal_error *err) {
  static const char not_text[] = "not UTF-8; is this a text file?";
  *more = true;
  while (s->unit == SHOAL_WORDS && s->at < s->end && is_blank(*s->at)) {
    s->at++;
    s->line_open = true;
  }
  if (s->at == s->end && s->unit == SHOAL_WORDS && s->whole && s->line_open) {
    s->token = end_of_line;
    s->length = sizeof end_of_line - 1;
    s->line_open = false;
    return SHOAL_OK;
  }
  if (s->at == s->end) {
    *more = false;
    return SHOAL_OK;
  }
  s->token = s->at;
  if (*s->at == '\n') {
    s->at++;
    s->length = 1;
    if (s->unit == SHOAL_WORDS) {
      s->token = end_of_line;
      s->length = sizeof end_of_line - 1;
    }
    next_line(s);
    return SHOAL_OK;
  }
  s->line_open = true;
  do {
    size_t bytes = shoal_utf8_character(s->at, (size_t)(s->end - s->at));
    if (bytes == 0) return fail_scan(s, SHOAL_CORRUPT, not_text, err);
    s->at += bytes;
    if (s->at - s->token > SHOAL_NAME_BYTES_MAX)
      return fail_scan(s, SHOAL_LIMIT, "a word of more than 4096 bytes; use chars: for such a text?", err);
  } while (s->unit == SHOAL_WORDS && s->at < s->end && *s->at != '\n' && !is_blank(*s->at));
  s->length = (size_t)(s->at - s->token);
  return SHOAL_OK;
}

/* Tokens as they are collected, numbered by first appearance or by a known vocabulary. */
typedef struct growing {
  int32_t *tokens;
  uint64_t count, capacity;
} growing;

static bool push(growing *g, int32_t token) {
  if (g->count == g->capacity) {
    uint64_t capacity = g->capacity ? g->capacity * 2 : 4096;
    int32_t *tokens = realloc(g->tokens, capacity * sizeof *tokens);
    if (!tokens) return false;
    g->tokens = tokens;
    g->capacity = capacity;
  }
  g->tokens[g->count++] = token;
  return true;
}

static shoal_status add_text(shoal_tokens *tokens, growing *g, const char *name, const char *bytes,
                             size_t length, bool known, shoal_error *err) {
  if (length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
    bytes += 3;
    length -= 3;
  }
  scanner s = {.unit = tokens->unit,
               .name = name,
               .at = bytes,
               .end = bytes + length,
               .line_start = bytes,
               .line = 1,
               .whole = true};
  uint32_t stand_in = shoal_names_find(&tokens->vocabulary, unknown, sizeof unknown - 1);
  for (;;) {
    bool more;
    shoal_status status = scan(&s, &more, err);
    if (status != SHOAL_OK || !more) return status;
    uint32_t number = known ? shoal_names_find(&tokens->vocabulary, s.token, s.length)
                            : shoal_names_add(&tokens->vocabulary, s.token, s.length);
    if (known && number == SHOAL_NO_NAME) number = stand_in;
    if (known && number == SHOAL_NO_NAME)
      return shoal_fail(err, SHOAL_INVALID,
                        "%s:%" PRIu64 ": '%.*s' is not in the vocabulary of the training text, which has no "
                        "<unk> for unknown %s",
                        name, s.line, s.length > 60 ? 60 : (int)s.length, s.token,
                        tokens->unit == SHOAL_WORDS ? "words" : "characters");
    if (number == SHOAL_NO_NAME || !push(g, (int32_t)number)) return fail_memory(err);
    if (tokens->vocabulary.count > SHOAL_VOCABULARY_MAX)
      return fail_scan(&s, SHOAL_LIMIT, "too many different words", err);
  }
}

typedef struct sortable {
  uint64_t uses;
  uint32_t old;
} sortable;

static int by_use(const void *a, const void *b) {
  const sortable *x = a, *y = b;
  if (x->uses != y->uses) return x->uses > y->uses ? -1 : 1;
  return x->old < y->old ? -1 : 1;
}

/* Renumbers the vocabulary, which stands in the order of appearance, by frequency. */
static shoal_status sort_vocabulary(shoal_tokens *tokens, growing *g, shoal_error *err) {
  uint32_t count = tokens->vocabulary.count;
  sortable *sorted = calloc(count + 1, sizeof *sorted);
  uint32_t *order = calloc(count + 1, sizeof *order), *place = calloc(count + 1, sizeof *place);
  bool good = sorted && order && place;
  if (good) {
    for (uint32_t i = 0; i < count; i++) sorted[i].old = i;
    for (uint64_t i = 0; i < g->count; i++) sorted[g->tokens[i]].uses++;
    qsort(sorted, count, sizeof *sorted, by_use);
    for (uint32_t i = 0; i < count; i++) {
      order[i] = sorted[i].old;
      place[sorted[i].old] = i;
    }
    good = shoal_names_reorder(&tokens->vocabulary, order);
  }
  for (uint64_t i = 0; good && i < g->count; i++) g->tokens[i] = (int32_t)place[g->tokens[i]];
  free(sorted);
  free(order);
  free(place);
  return good ? SHOAL_OK : fail_memory(err);
}

/* ---- files and parts ---------------------------------------------------------------- */

/* Adds a text that defines the vocabulary, unless one was given. */
static shoal_status first_text(shoal_tokens *tokens, growing *g, shoal_text_unit unit, const char *name,
                               const char *bytes, size_t length, shoal_error *err) {
  bool known = tokens->vocabulary.count > 0;
  if (known && unit != tokens->unit)
    return shoal_fail(err, SHOAL_INVALID, "%s: the model was trained on %s", name,
                      tokens->unit == SHOAL_WORDS ? "words: write text:FILE"
                                                  : "characters: write chars:FILE");
  tokens->unit = unit;
  shoal_status status = add_text(tokens, g, name, bytes, length, known, err);
  if (status == SHOAL_OK && g->count == 0)
    status = shoal_fail(err, SHOAL_INVALID, "%s: there is no text in this file", name);
  if (status == SHOAL_OK && !known) status = sort_vocabulary(tokens, g, err);
  return status;
}

shoal_status shoal_tokens_parse(shoal_tokens *tokens, shoal_text_unit unit, const char *name,
                                const char *bytes, size_t length, shoal_error *err) {
  growing g = {0};
  shoal_status status = first_text(tokens, &g, unit, name, bytes, length, err);
  tokens->all = g.tokens;
  tokens->part[SHOAL_TRAIN] = g.tokens;
  tokens->count[SHOAL_TRAIN] = g.count;
  return status;
}

shoal_status shoal_tokens_open(shoal_tokens *tokens, shoal_text_unit unit,
                               const char *const paths[SHOAL_SPLITS], shoal_error *err) {
  growing g = {0};
  uint64_t start[SHOAL_SPLITS] = {0};
  bool fitted = tokens->vocabulary.count > 0, same = !fitted;
  shoal_status status = SHOAL_OK;
  for (int split = 0; split < SHOAL_SPLITS && status == SHOAL_OK; split++) {
    start[split] = g.count;
    if (!paths[split]) continue;
    shoal_bytes bytes;
    status = shoal_bytes_open(&bytes, paths[split], SHOAL_DATA_FILE_BYTES_MAX, err);
    if (status != SHOAL_OK) break;
    const char *data = (const char *)bytes.data;
    if (split == SHOAL_TRAIN) {
      char sha256[SHOAL_SHA256_HEX];
      shoal_sha256_hex(data, bytes.length, sha256);
      same |= strcmp(sha256, tokens->sha256) == 0;
      if (!fitted) memcpy(tokens->sha256, sha256, sizeof sha256);
      status = first_text(tokens, &g, unit, paths[split], data, bytes.length, err);
    } else {
      status = add_text(tokens, &g, paths[split], data, bytes.length, true, err);
    }
    tokens->count[split] = g.count - start[split];
    shoal_bytes_close(&bytes);
  }
  tokens->all = g.tokens;
  if (!paths[SHOAL_VALID] && !paths[SHOAL_TEST]) {
    uint64_t held = same ? g.count / 20 : 0;
    start[SHOAL_TEST] = same ? g.count - held : 0;
    start[SHOAL_VALID] = start[SHOAL_TEST] - held;
    tokens->count[SHOAL_TRAIN] = start[SHOAL_VALID];
    tokens->count[SHOAL_VALID] = held;
    tokens->count[SHOAL_TEST] = g.count - start[SHOAL_TEST];
  }
  for (int split = 0; split < SHOAL_SPLITS; split++)
    tokens->part[split] = g.tokens ? g.tokens + start[split] : NULL;
  return status;
}

/* Whether a token can stand in a line that a person copies. */
static bool is_plain(const char *token, bool is_first) {
  enum { BYTES_MAX = 30 };
  if (strcmp(token, end_of_line) == 0 || strcmp(token, unknown) == 0 || strlen(token) > BYTES_MAX)
    return false;
  if (is_first && (token[0] == '-' || token[0] == ' ')) return false; /* '-' would be taken for an option */
  for (const char *c = token; *c; c++) {
    bool is_control =
        (unsigned char)*c < 0x20 || *c == 0x7f || ((unsigned char)c[0] == 0xc2 && (unsigned char)c[1] < 0xa0);
    if (is_control) return false;
  }
  return true;
}

/* Names some that there are. */
static shoal_status fail_unknown(const shoal_tokens *tokens, const char *token, size_t length,
                                 shoal_error *err) {
  enum { NAMED = 5 };
  shoal_text some = {0};
  uint32_t named = 0;
  for (uint32_t i = 0; i < tokens->vocabulary.count && named < NAMED; i++) {
    const char *known = shoal_names_at(&tokens->vocabulary, i);
    if (is_plain(known, true)) shoal_text_addf(&some, "%s'%s'", named++ ? ", " : "; it has ", known);
  }
  shoal_fail(err, SHOAL_INVALID, "'%.*s' is not in the vocabulary of the training text%s%s",
             length > 60 ? 60 : (int)length, token, some.bytes ? some.bytes : "",
             named > 0 && named < tokens->vocabulary.count ? " and others" : "");
  shoal_text_release(&some);
  return SHOAL_INVALID;
}

shoal_status shoal_tokens_encode(const shoal_tokens *tokens, const char *text, int32_t *out, size_t max,
                                 size_t *count, shoal_error *err) {
  uint32_t stand_in = shoal_names_find(&tokens->vocabulary, unknown, sizeof unknown - 1);
  scanner s = {.unit = tokens->unit,
               .name = "the text",
               .at = text,
               .end = text + strlen(text),
               .line_start = text,
               .line = 1};
  *count = 0;
  while (*count < max) {
    bool more;
    shoal_status status = scan(&s, &more, err);
    if (status != SHOAL_OK || !more) return status;
    uint32_t number = shoal_names_find(&tokens->vocabulary, s.token, s.length);
    if (number == SHOAL_NO_NAME) number = stand_in;
    if (number == SHOAL_NO_NAME) return fail_unknown(tokens, s.token, s.length, err);
    out[(*count)++] = (int32_t)number;
  }
  return SHOAL_OK;
}

void shoal_tokens_opening(const shoal_tokens *tokens, shoal_text *out) {
  const uint32_t most = tokens->unit == SHOAL_WORDS ? 3 : 20;
  const size_t start = out->length;
  size_t word_end = start; /* where the last whole word of a text of characters ends */
  uint32_t taken = 0;
  for (uint64_t i = 0; i < tokens->count[SHOAL_TRAIN] && taken < most; i++) {
    const char *token = shoal_names_at(&tokens->vocabulary, (uint32_t)tokens->part[SHOAL_TRAIN][i]);
    bool plain = is_plain(token, taken == 0), is_space = strcmp(token, " ") == 0;
    if (!plain && taken > 0) break;
    if (!plain) continue;
    if (is_space) word_end = out->length;
    if (tokens->unit == SHOAL_WORDS && taken > 0) shoal_text_add(out, " ", 1);
    shoal_text_add(out, token, strlen(token));
    taken++;
  }
  bool is_cut = tokens->unit == SHOAL_CHARACTERS && taken == most && word_end > start;
  if (is_cut && !out->failed) {
    out->bytes[word_end] = 0;
    out->length = word_end;
  }
}

/* ---- streams ------------------------------------------------------------------------ */

void shoal_streams_init(shoal_streams *streams, const int32_t *tokens, uint64_t count, uint32_t batch,
                        uint32_t steps) {
  SHOAL_ASSERT(batch > 0 && steps > 0);
  uint64_t places = count > 0 ? count - 1 : 0;
  uint64_t stream_places = (places + batch - 1) / batch;
  *streams = (shoal_streams){
      .tokens = tokens,
      .places = places,
      .stream_places = stream_places,
      .batch = batch,
      .steps = steps,
      .windows = (stream_places + steps - 1) / steps,
  };
}

uint64_t shoal_streams_window(const shoal_streams *streams, uint64_t position, uint32_t *places) {
  uint64_t stream = position % streams->batch, window = position / streams->batch;
  uint64_t first = stream * streams->stream_places + window * streams->steps;
  uint64_t end = (stream + 1) * streams->stream_places;
  if (end > streams->places) end = streams->places;
  uint64_t left = first < end ? end - first : 0;
  *places = left < streams->steps ? (uint32_t)left : streams->steps;
  return first;
}
