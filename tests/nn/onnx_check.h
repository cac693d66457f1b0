/* onnx_check.h: an ONNX file read back: the bytes are a whole message, values are made once and before they are
 * used, tensors have the size of their shape. That other runtimes compute the same is for tests/interop. */
#ifndef SHOAL_TESTS_ONNX_CHECK_H
#define SHOAL_TESTS_ONNX_CHECK_H

#include "check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* ---- a reader of protocol buffers --------------------------------------------------- */

typedef struct bytes {
  const uint8_t *at, *end;
} bytes;

typedef struct field {
  uint32_t number;
  uint64_t value; /* kind 0 */
  bytes content;  /* kind 2 */
} field;

static inline uint64_t read_varint(bytes *from) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    assert_true(from->at < from->end);
    uint8_t byte = *from->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail_msg("a number without an end");
  return 0;
}

static inline bool next_field(bytes *from, field *out) {
  if (from->at == from->end) return false;
  uint64_t key = read_varint(from);
  *out = (field){.number = (uint32_t)(key >> 3)};
  uint64_t length = 0;
  switch (key & 7) {
  case 0: out->value = read_varint(from); return true;
  case 1: length = 8; break;
  case 2: length = read_varint(from); break;
  case 5: length = 4; break;
  default: fail_msg("unknown kind of field");
  }
  assert_true(length <= (uint64_t)(from->end - from->at));
  out->content = (bytes){from->at, from->at + length};
  from->at += length;
  return true;
}

/* ---- a checker of graphs ------------------------------------------------------------ */

enum { NAMES_MAX = 4096, NAME_MAX_BYTES = 128, WORDS_BYTES = 1 << 16 };

typedef struct checked {
  char names[NAMES_MAX][NAME_MAX_BYTES]; /* values that exist */
  size_t names_count;
  char ops[WORDS_BYTES];          /* "Conv MaxPool ..." in order */
  char inputs[1024];              /* "input", or "age,colour", likewise */
  char outputs[1024], meta[1024]; /* of the metadata the keys */
  uint64_t opset, opset_tables;   /* 0: none */
} checked;

static inline const char *text_of(bytes content) {
  static char text[NAME_MAX_BYTES];
  size_t length = (size_t)(content.end - content.at);
  assert_true(length < sizeof text);
  memcpy(text, content.at, length);
  text[length] = 0;
  return text;
}

static inline void add_word(char *list, size_t size, char between, const char *word) {
  size_t used = strlen(list);
  assert_true(used + strlen(word) + 2 < size);
  if (used > 0) list[used++] = between;
  memcpy(list + used, word, strlen(word) + 1);
}

static inline bool is_known(const checked *c, const char *name) {
  for (size_t i = 0; i < c->names_count; i++) {
    if (strcmp(c->names[i], name) == 0) return true;
  }
  return false;
}

static inline void add_name(checked *c, const char *name) {
  if (is_known(c, name)) fail_msg("'%s' is made twice", name);
  assert_true(c->names_count < NAMES_MAX);
  memcpy(c->names[c->names_count++], name, strlen(name) + 1);
}

static inline void check_tensor(checked *c, bytes message) {
  uint64_t values = 1, type = 0, raw = 0;
  field f;
  while (next_field(&message, &f)) {
    if (f.number == 1) values *= f.value;
    if (f.number == 2) type = f.value;
    if (f.number == 8) add_name(c, text_of(f.content));
    if (f.number == 9) raw = (uint64_t)(f.content.end - f.content.at);
  }
  assert_true(type == 1 || type == 7 || type == 11);
  assert_int_equal(raw, values * (type == 1 ? 4 : 8));
}

static inline void check_node(checked *c, bytes message) {
  field f;
  for (bytes left = message; next_field(&left, &f);) {
    if (f.number == 1 && !is_known(c, text_of(f.content)))
      fail_msg("'%s' is used before it is made", text_of(f.content));
    if (f.number == 4) add_word(c->ops, sizeof c->ops, ' ', text_of(f.content));
  }
  for (bytes left = message; next_field(&left, &f);) {
    if (f.number == 2) add_name(c, text_of(f.content));
  }
}

static inline void check_graph(checked *c, bytes message) {
  field f, name;
  for (bytes left = message; next_field(&left, &f);) {
    if (f.number == 5) check_tensor(c, f.content);
    if (f.number != 11) continue;
    assert_true(next_field(&f.content, &name) && name.number == 1);
    add_name(c, text_of(name.content));
    add_word(c->inputs, sizeof c->inputs, ',', text_of(name.content));
  }
  for (bytes left = message; next_field(&left, &f);) {
    if (f.number == 1) check_node(c, f.content);
  }
  for (bytes left = message; next_field(&left, &f);) {
    if (f.number != 12) continue;
    assert_true(next_field(&f.content, &name) && name.number == 1);
    assert_true(is_known(c, text_of(name.content)));
    add_word(c->outputs, sizeof c->outputs, ',', text_of(name.content));
  }
}

static inline void check_opset(checked *c, bytes message) {
  uint64_t *version = &c->opset;
  for (field f; next_field(&message, &f);) {
    if (f.number == 1 && strcmp(text_of(f.content), "ai.onnx.ml") == 0) version = &c->opset_tables;
    if (f.number == 2) *version = f.value;
  }
}

static inline void check_onnx_file(const char *path, checked *c) {
  shoal_error err;
  uint8_t *file;
  size_t length;
  memset(c, 0, sizeof *c);
  assert_int_equal(shoal_file_read(path, 1 << 26, false, &file, &length, &err), SHOAL_OK);
  bytes left = {file, file + length};
  bool ir = false, graph_there = false;
  for (field f, key; next_field(&left, &f);) {
    if (f.number == 1) ir = f.value == 8;
    if (f.number == 8) check_opset(c, f.content);
    if (f.number == 14) {
      assert_true(next_field(&f.content, &key) && key.number == 1);
      add_word(c->meta, sizeof c->meta, ',', text_of(key.content));
    }
    if (f.number == 7) {
      graph_there = true;
      check_graph(c, f.content);
    }
  }
  assert_true(ir && graph_there);
  free(file);
}

#endif
