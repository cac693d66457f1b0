#include "files.h"

#include "data/text.h"

/* The tokens of a text by name, each followed by '|'. */
static char *shown(const shoal_tokens *tokens, shoal_split split) {
  shoal_text text;
  shoal_text_init(&text);
  shoal_text_add(&text, "", 0);
  for (uint64_t i = 0; i < tokens->count[split]; i++)
    shoal_text_addf(&text, "%s|", shoal_names_at(&tokens->vocabulary, (uint32_t)tokens->part[split][i]));
  return text.bytes;
}

static void words_end_at_white_space_and_lines_in_eos(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"a b\nc\n", "a|b|<eos>|c|<eos>|"},
      {" a  b \n", "a|b|<eos>|"},
      {"a\n\nb\n", "a|<eos>|<eos>|b|<eos>|"},
      {"a", "a|<eos>|"},
      {"a\r\nb\tc\r\n", "a|<eos>|b|c|<eos>|"},
      {"\xef\xbb\xbf\xc3\xa4\n", "\xc3\xa4|<eos>|"},
      {"\n", "<eos>|"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_tokens tokens;
    shoal_tokens_init(&tokens);
    shoal_error err;
    if (shoal_tokens_parse(&tokens, SHOAL_WORDS, "t", cases[i][0], strlen(cases[i][0]), &err) != SHOAL_OK)
      fail_msg("%s", err.text);
    char *got = shown(&tokens, SHOAL_TRAIN);
    assert_string_equal(got, cases[i][1]);
    free(got);
    shoal_tokens_release(&tokens);
  }
}

static void characters_are_those_of_utf8(void **state) {
  (void)state;
  const char text[] = "a\xc3\xa4\n\xf0\x9f\x90\x9f"
                      "a";
  shoal_tokens tokens;
  shoal_tokens_init(&tokens);
  shoal_error err;
  assert_int_equal(shoal_tokens_parse(&tokens, SHOAL_CHARACTERS, "t", text, strlen(text), &err), SHOAL_OK);
  char *got = shown(&tokens, SHOAL_TRAIN);
  assert_string_equal(got, "a|\xc3\xa4|\n|\xf0\x9f\x90\x9f|a|");
  free(got);
  shoal_tokens_release(&tokens);
}

static void the_vocabulary_goes_by_frequency_then_appearance(void **state) {
  (void)state;
  const char text[] = "c b a b a d\nd\n";
  const char *expected[] = {"b", "a", "d", "<eos>", "c"};
  shoal_tokens tokens;
  shoal_tokens_init(&tokens);
  shoal_error err;
  assert_int_equal(shoal_tokens_parse(&tokens, SHOAL_WORDS, "t", text, strlen(text), &err), SHOAL_OK);
  assert_int_equal(tokens.vocabulary.count, 5);
  for (uint32_t i = 0; i < 5; i++) assert_string_equal(shoal_names_at(&tokens.vocabulary, i), expected[i]);
  shoal_tokens_release(&tokens);
}

static void what_is_not_text_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t length;
    const char *why;
  } cases[] = {
      {"", 0, "there is no text"},
      {"ab\nc\xff", 5, "t.txt:2:2: not UTF-8"},
      {"ab\0c", 4, "t.txt:1:3: not UTF-8"},
      {"\xc3", 1, "t.txt:1:1: not UTF-8"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (int unit = 0; unit < 2; unit++) {
      shoal_tokens tokens;
      shoal_tokens_init(&tokens);
      shoal_error err;
      assert_int_not_equal(
          shoal_tokens_parse(&tokens, (shoal_text_unit)unit, "t.txt", cases[i].bytes, cases[i].length, &err),
          SHOAL_OK);
      CHECK_SAYS(&err, "t.txt", cases[i].why);
      shoal_tokens_release(&tokens);
    }
  }
  char *word = malloc(5000);
  assert_non_null(word);
  memset(word, 'x', 5000);
  shoal_tokens tokens;
  shoal_tokens_init(&tokens);
  shoal_error err;
  assert_int_equal(shoal_tokens_parse(&tokens, SHOAL_WORDS, "t.txt", word, 5000, &err), SHOAL_LIMIT);
  shoal_tokens_release(&tokens);
  free(word);
}

static void three_files_are_three_parts(void **state) {
  (void)state;
  put_text("train.txt", "a b <unk>\n");
  put_text("valid.txt", "b c\n");
  put_text("test.txt", "a\n");
  const char *paths[SHOAL_SPLITS] = {"train.txt", "valid.txt", "test.txt"};
  shoal_tokens tokens;
  shoal_tokens_init(&tokens);
  shoal_error err;
  assert_int_equal(shoal_tokens_open(&tokens, SHOAL_WORDS, paths, &err), SHOAL_OK);
  static const char *const expected[] = {"a|b|<unk>|<eos>|", "b|<unk>|<eos>|", "a|<eos>|"};
  for (int split = 0; split < SHOAL_SPLITS; split++) {
    char *got = shown(&tokens, (shoal_split)split);
    assert_string_equal(got, expected[split]);
    free(got);
  }
  shoal_tokens_release(&tokens);

  put_text("train.txt", "a b\n");
  assert_int_equal(shoal_tokens_open(&tokens, SHOAL_WORDS, paths, &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "valid.txt:1", "'c' is not in the vocabulary");
  shoal_tokens_release(&tokens);
}

static void one_file_is_cut_and_every_token_is_in_one_part(void **state) {
  (void)state;
  char text[256];
  for (int length = 1; length < 255; length++) {
    memset(text, 'a' + length % 3, sizeof text);
    text[length] = 0;
    put_text("t.txt", text);
    const char *paths[SHOAL_SPLITS] = {"t.txt"};
    shoal_tokens tokens;
    shoal_tokens_init(&tokens);
    shoal_error err;
    assert_int_equal(shoal_tokens_open(&tokens, SHOAL_CHARACTERS, paths, &err), SHOAL_OK);
    assert_int_equal(tokens.count[0] + tokens.count[1] + tokens.count[2], length);
    assert_int_equal(tokens.count[SHOAL_TEST], length / 20);
    assert_int_equal(tokens.count[SHOAL_VALID], length / 20);
    assert_ptr_equal(tokens.part[1], tokens.part[0] + tokens.count[0]);
    assert_ptr_equal(tokens.part[2], tokens.part[1] + tokens.count[1]);
    shoal_tokens_release(&tokens);
  }
}

static void text_is_encoded_with_the_vocabulary(void **state) {
  (void)state;
  const char text[] = "the cat saw the <unk>\n";
  shoal_tokens tokens;
  shoal_tokens_init(&tokens);
  shoal_error err;
  assert_int_equal(shoal_tokens_parse(&tokens, SHOAL_WORDS, "t", text, strlen(text), &err), SHOAL_OK);
  /* the: 0, then cat, saw, <unk>, <eos> */
  static const struct {
    const char *text;
    size_t max, count;
    int32_t tokens[4];
  } cases[] = {
      {"the cat", 4, 2, {0, 1}}, {"the cat \n", 4, 3, {0, 1, 4}},    {"dog saw", 4, 2, {3, 2}},
      {"", 4, 0, {0}},           {"the the the the the", 3, 3, {0}}, {"\nthe", 4, 2, {4, 0}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int32_t got[8];
    size_t count;
    assert_int_equal(shoal_tokens_encode(&tokens, cases[i].text, got, cases[i].max, &count, &err), SHOAL_OK);
    assert_int_equal(count, cases[i].count);
    assert_memory_equal(got, cases[i].tokens, count * sizeof *got);
  }
  shoal_tokens_release(&tokens);

  assert_int_equal(shoal_tokens_parse(&tokens, SHOAL_CHARACTERS, "t", "abc", 3, &err), SHOAL_OK);
  int32_t got[8];
  size_t count;
  assert_int_equal(shoal_tokens_encode(&tokens, "cab", got, 8, &count, &err), SHOAL_OK);
  assert_int_equal(count, 3);
  assert_int_equal(shoal_tokens_encode(&tokens, "cad", got, 8, &count, &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "'d'");
  shoal_tokens_release(&tokens);
}

static void a_text_opens_with_what_a_prompt_can_take(void **state) {
  (void)state;
  static const struct {
    shoal_text_unit unit;
    const char *text, *opening;
  } cases[] = {
      {SHOAL_WORDS, "\n--data <unk> it's a\tlong day\n", "it's a long"},
      {SHOAL_WORDS, "one\ntwo\n", "one"},
      {SHOAL_WORDS, "\x1b[2J <unk> --\n", ""},
      {SHOAL_CHARACTERS, "\n -Once upon a time there was\n", "Once upon a time"},
      {SHOAL_CHARACTERS, "\xc2\x9b\xc3\xa9t\xc3\xa9\nb", "\xc3\xa9t\xc3\xa9"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_tokens tokens;
    shoal_text opening;
    shoal_error err;
    shoal_tokens_init(&tokens);
    shoal_text_init(&opening);
    assert_int_equal(
        shoal_tokens_parse(&tokens, cases[i].unit, "t", cases[i].text, strlen(cases[i].text), &err),
        SHOAL_OK);
    shoal_tokens_opening(&tokens, &opening);
    assert_string_equal(opening.length ? opening.bytes : "", cases[i].opening);
    shoal_text_release(&opening);
    shoal_tokens_release(&tokens);
  }
}

static void every_place_of_a_text_is_in_one_window(void **state) {
  (void)state;
  static const uint32_t batches[] = {1, 2, 3, 7, 20, 64}, lengths[] = {1, 2, 5, 20};
  for (uint64_t count = 0; count < 140; count++) {
    for (int b = 0; b < 6; b++) {
      for (int s = 0; s < 4; s++) {
        shoal_streams streams;
        shoal_streams_init(&streams, NULL, count, batches[b], lengths[s]);
        uint8_t seen[140] = {0};
        uint64_t last[64] = {0}, all = 0;
        for (uint64_t position = 0; position < streams.windows * batches[b]; position++) {
          uint32_t places;
          uint64_t start = shoal_streams_window(&streams, position, &places);
          uint64_t stream = position % batches[b];
          /* A stream goes on where its last window ended. */
          if (places > 0 && position >= batches[b]) assert_true(start == last[stream]);
          last[stream] = start + places;
          for (uint32_t i = 0; i < places; i++, all++) assert_int_equal(seen[start + i]++, 0);
        }
        assert_int_equal(all, count > 0 ? count - 1 : 0);
      }
    }
  }
}

static void real_texts_have_the_published_counts(void **state) {
  (void)state;
  const char *shared = shared_data();
  if (!shared) skip();
  char paths[SHOAL_SPLITS][4200];
  const char *list[SHOAL_SPLITS], *names[] = {"train", "valid", "test"};
  for (int i = 0; i < SHOAL_SPLITS; i++) {
    snprintf(paths[i], sizeof paths[i], "%s/ptb/ptb.%s.txt", shared, names[i]);
    list[i] = paths[i];
  }
  shoal_tokens tokens;
  shoal_tokens_init(&tokens);
  shoal_error err;
  if (shoal_tokens_open(&tokens, SHOAL_WORDS, list, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(tokens.count[SHOAL_TRAIN], 929589);
  assert_int_equal(tokens.count[SHOAL_VALID], 73760);
  assert_int_equal(tokens.count[SHOAL_TEST], 82430);
  assert_int_equal(tokens.vocabulary.count, 10000);
  assert_string_equal(shoal_names_at(&tokens.vocabulary, 0), "the");
  shoal_tokens_release(&tokens);

  snprintf(paths[0], sizeof paths[0], "%s/text/tinyshakespeare.txt", shared);
  list[1] = list[2] = NULL;
  assert_int_equal(shoal_tokens_open(&tokens, SHOAL_CHARACTERS, list, &err), SHOAL_OK);
  assert_int_equal(tokens.count[0] + tokens.count[1] + tokens.count[2], 1115394);
  assert_int_equal(tokens.vocabulary.count, 65);
  shoal_tokens_release(&tokens);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(words_end_at_white_space_and_lines_in_eos),
      cmocka_unit_test(characters_are_those_of_utf8),
      cmocka_unit_test(the_vocabulary_goes_by_frequency_then_appearance),
      cmocka_unit_test(what_is_not_text_is_refused),
      IN_FOLDER(three_files_are_three_parts),
      IN_FOLDER(one_file_is_cut_and_every_token_is_in_one_part),
      cmocka_unit_test(text_is_encoded_with_the_vocabulary),
      cmocka_unit_test(a_text_opens_with_what_a_prompt_can_take),
      cmocka_unit_test(every_place_of_a_text_is_in_one_window),
      cmocka_unit_test(real_texts_have_the_published_counts),
  };
  return RUN_TESTS(tests);
}
