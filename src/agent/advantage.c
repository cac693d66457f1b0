/* advantage.c: see advantage.h. */
#include "agent/advantage.h"

#include "agent/exact_math.h"
#include "agent/vector.h"
#include "base/assert.h"

/* What comes after a row: its value, and whether the next row belongs to the same episode. */
typedef struct after {
  double value;
  double goes_on; /* 1 or 0 */
} after;

/* Rows are asked for from the last to the first of all, so cut-off rows come up in descending order. */
typedef struct looker {
  const shoal_advantage_task *task;
  uint32_t lasts_left;
} looker;

static after look(looker *l, uint32_t row) {
  const shoal_advantage_task *task = l->task;
  switch ((shoal_end)task->ends[row]) {
  case SHOAL_TERMINATED: return (after){0, 0};
  case SHOAL_TRUNCATED:
    SHOAL_ASSERT(l->lasts_left > 0 && task->last_rows[l->lasts_left - 1] == row);
    return (after){task->last_values[--l->lasts_left], 0};
  case SHOAL_GOES_ON: break;
  }
  return (after){task->values[row + task->envs], 1};
}

void shoal_advantage_gae(const shoal_advantage_task *task, float *advantages, float *targets) {
  looker l = {task, task->lasts_count};
  uint32_t rows = task->envs * task->steps;
  double g = task->discount, keep = (double)task->discount * task->lambda;
  for (uint32_t row = rows; row-- > 0;) {
    after next = look(&l, row);
    double later = row + task->envs < rows ? advantages[row + task->envs] : 0;
    double delta = (double)task->rewards[row] * task->reward_scale + g * next.value - task->values[row];
    double advantage = delta + keep * next.goes_on * later;
    advantages[row] = (float)advantage;
    targets[row] = (float)(task->values[row] + advantage);
  }
}

/* Until the end, `targets` holds what is added to the value: acc. */
void shoal_advantage_vtrace(const shoal_advantage_task *task, const float *log_ratios, float *advantages,
                            float *targets) {
  looker l = {task, task->lasts_count};
  uint32_t rows = task->envs * task->steps;
  double g = task->discount;
  for (uint32_t row = rows; row-- > 0;) {
    after next = look(&l, row);
    double ratio = log_ratios[row] < 0 ? shoal_exact_exp(log_ratios[row]) : 1;
    double later = row + task->envs < rows ? targets[row + task->envs] : 0;
    double reward = (double)task->rewards[row] * task->reward_scale;
    double followed = later * next.goes_on;
    double delta = ratio * (reward + g * next.value - task->values[row]);
    advantages[row] = (float)(ratio * (reward + g * (next.value + followed) - task->values[row]));
    targets[row] = (float)(delta + g * ratio * task->lambda * followed);
  }
  for (uint32_t row = 0; row < rows; row++) targets[row] += task->values[row];
}
