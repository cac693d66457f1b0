/* insight.h: what the trials of a search say of its space: which settings matter, and where nothing is to
 * be found.
 *
 * Importance: a small forest of regression trees over the unit cube predicts the ranks of the scores; a
 * setting's share is that of the predictions' variance which it explains on its own (functional analysis
 * of variance). How far a trial was trained is a dimension of the trees, too, so that its effect is not
 * taken for a setting's.
 *
 * Lessons: sentences such as "wider than 256 brings nothing here: best of 12 such trials 0.861, best of
 * the other 30 0.862". One is written only where none of the best trials is of that kind and chance alone
 * would have that less than once in a hundred times; or where trials of that kind are worse as a rule, each
 * compared with those that were trained as long, and chance would have that hardly ever.
 *
 * Everything follows from the trials alone, to the bit. Threads: any. */
#ifndef SHOAL_SEARCH_INSIGHT_H
#define SHOAL_SEARCH_INSIGHT_H

#include "search/board.h"

enum {
  SHOAL_EVIDENCE_LEAST = 20, /* trials; with fewer nothing is said */
  SHOAL_EVIDENCE_MAX = 4000, /* of more, the newest */
};

/* A trial with a score; failed ones are left out. */
typedef struct shoal_evidence {
  const shoal_values *values;
  double score;
  uint32_t rung;
} shoal_evidence;

typedef struct shoal_insight {
  double share[SHOAL_SETTINGS]; /* from 0 to 1; together at most 1, the rest lies in how they act together */
  bool known;                   /* false: too few trials, or all alike */
} shoal_insight;

shoal_status shoal_insight_find(shoal_insight *out, const shoal_space *space, const shoal_evidence *trials,
                                uint64_t count, bool higher_is_better, shoal_error *err);
/* {"trials":42,"importance":[{"setting":"rate","share":0.41},...],
 *  "lessons":[{"setting":"width","text":"..."},...]};
 * the most important first, settings with one value left out; both empty where the evidence is not enough, and
 * "lessons_why" says so where there is none. */
shoal_status shoal_insight_write(const shoal_space *space, const shoal_evidence *trials, uint64_t count,
                                 bool higher_is_better, shoal_json *json, const char *key, shoal_error *err);
/* The same from a board's trials. */
shoal_status shoal_insight_board(const shoal_space *space, const shoal_board *board, bool higher_is_better,
                                 shoal_json *json, const char *key, shoal_error *err);

#endif
