/* text.h: texts as sequences of token numbers.
 *
 * WORDS: what stands between white space, and <eos> at the end of every line.
 * CHARACTERS: the characters of UTF-8. Numbers go by frequency, the most frequent first, and
 * by first appearance among equals. The vocabulary is that of the training text (of the
 * whole of a single file, whose last 5% are for test and the 5% before for validation);
 * elsewhere an unknown word becomes <unk>, or is an error where there is no <unk>. With a
 * vocabulary from before, a single file other than the one it came from is all for test.
 *
 * Ownership: init, open, then release. Threads: read-only once opened. */
#ifndef SHOAL_DATA_TEXT_H
#define SHOAL_DATA_TEXT_H

#include <cjson/cJSON.h>

#include "base/hash.h"
#include "data/dataset.h"
#include "data/names.h"

typedef enum shoal_text_unit { SHOAL_WORDS, SHOAL_CHARACTERS } shoal_text_unit;

typedef struct shoal_tokens {
  shoal_text_unit unit;
  shoal_names vocabulary;
  char sha256[SHOAL_SHA256_HEX]; /* of the file it was made from */
  int32_t *all;                  /* owned; the parts lie in it */
  const int32_t *part[SHOAL_SPLITS];
  uint64_t count[SHOAL_SPLITS];
} shoal_tokens;

void shoal_tokens_init(shoal_tokens *tokens);
void shoal_tokens_release(shoal_tokens *tokens);

/* The vocabulary, from what an earlier write gave; before open. */
shoal_status shoal_tokens_read_fitted(shoal_tokens *tokens, const cJSON *json, shoal_error *err);
void shoal_tokens_write(const shoal_tokens *tokens, shoal_json *json);

/* paths: one a part, NULL where there is none; or SHOAL_TRAIN's alone, to be cut. */
shoal_status shoal_tokens_open(shoal_tokens *tokens, shoal_text_unit unit,
                               const char *const paths[SHOAL_SPLITS], shoal_error *err);

/* The same from memory, as one part that is not cut; `name` is for errors. */
shoal_status shoal_tokens_parse(shoal_tokens *tokens, shoal_text_unit unit, const char *name,
                                const char *bytes, size_t length, shoal_error *err);

/* Numbers of a piece of text, at most max; a line's end is <eos>, but the text's is not. */
shoal_status shoal_tokens_encode(const shoal_tokens *tokens, const char *text, int32_t *out, size_t max,
                                 size_t *count, shoal_error *err);

/* Adds the first words of the training text that encode takes as they are, or the first characters: something to
 * begin a prompt with. Adds nothing where there are none. */
void shoal_tokens_opening(const shoal_tokens *tokens, shoal_text *out);

/* A text of n tokens has n - 1 places where the next one is to be foretold. They are cut into
 * `batch` contiguous streams, and these into windows of `steps`. Position p is window
 * p / batch of stream p % batch. What is missing at a stream's end has weight 0. */
typedef struct shoal_streams {
  const int32_t *tokens;
  uint64_t places;
  uint64_t stream_places; /* of a stream; of the last ones less */
  uint32_t batch, steps;
  uint64_t windows; /* of a stream */
} shoal_streams;

void shoal_streams_init(shoal_streams *streams, const int32_t *tokens, uint64_t count, uint32_t batch,
                        uint32_t steps);
/* Where the window of a position begins, and how many places it has: 0 to steps. */
uint64_t shoal_streams_window(const shoal_streams *streams, uint64_t position, uint32_t *places);

#endif
