/* human.c: numbers, sizes, times and words as people write them. */
#include "base/human.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

shoal_human shoal_human_count(uint64_t count) {
  shoal_human human;
  _Static_assert(sizeof human.text >= SHOAL_GROUPED_MAX, "room for the largest number");
  shoal_grouped(count, human.text);
  return human;
}

shoal_human shoal_human_amount(double amount, const char *unit) {
  static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  /* 999.5 would print as 1000. */
  while (amount >= 999.5 && prefix + 1 < sizeof prefixes / sizeof prefixes[0]) {
    amount /= 1000;
    prefix++;
  }
  shoal_human human;
  const char *space = prefixes[prefix][0] || unit[0] ? " " : "";
  snprintf(human.text, sizeof human.text, "%.*f%s%s%s", prefix > 0 && amount < 99.95 ? 1 : 0, amount, space,
           prefixes[prefix], unit);
  return human;
}

shoal_human shoal_human_bytes(double bytes) { return shoal_human_amount(bytes, "B"); }

shoal_human shoal_human_seconds(double seconds) {
  shoal_human human;
  size_t size = sizeof human.text;
  if (!isfinite(seconds) || seconds < 0 || seconds > 1e9) {
    snprintf(human.text, size, "?");
    return human;
  }
  if (seconds < 0.995) {
    snprintf(human.text, size, "%.2fs", seconds);
  } else if (seconds < 9.95) {
    snprintf(human.text, size, "%.1fs", seconds);
  } else {
    unsigned long whole = (unsigned long)(seconds + 0.5);
    if (whole < 60)
      snprintf(human.text, size, "%lus", whole);
    else if (whole < 3600)
      snprintf(human.text, size, "%lum %02lus", whole / 60, whole % 60);
    else if (whole < 86400)
      snprintf(human.text, size, "%luh %02lum", whole / 3600, whole / 60 % 60);
    else
      snprintf(human.text, size, "%lud %luh", whole / 86400, whole / 3600 % 24);
  }
  return human;
}

shoal_human shoal_human_number(double number) {
  shoal_human human;
  double size = fabs(number);
  if (!isfinite(number))
    snprintf(human.text, sizeof human.text, "%s", isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
  else if (size == 0 || (size >= 0.001 && size < 10))
    snprintf(human.text, sizeof human.text, "%.4f", number);
  else if (size >= 10 && size < 100000)
    snprintf(human.text, sizeof human.text, "%.*f", size < 100 ? 3 : size < 1000 ? 2 : 1, number);
  else
    snprintf(human.text, sizeof human.text, "%.3g", number);
  return human;
}

double shoal_human_float(float value) {
  char figures[32];
  for (int precision = 6; isfinite(value) && precision <= 9; precision++) {
    snprintf(figures, sizeof figures, "%.*g", precision, (double)value);
    double read = strtod(figures, NULL);
    if ((float)read == value) return read;
  }
  return value;
}

void shoal_human_quote(shoal_text *out, const char *word) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
  if (word[0] && word[strspn(word, plain)] == 0) {
    shoal_text_add(out, word, strlen(word));
    return;
  }
  shoal_text_add(out, "'", 1);
  for (; *word; word++) {
    if (*word == '\'')
      shoal_text_add(out, "'\\''", 4);
    else
      shoal_text_add(out, word, 1);
  }
  shoal_text_add(out, "'", 1);
}
