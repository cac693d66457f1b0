/* recipe_options.h: the flags for the settings of a recipe, of the commands that train a network or have it trained.
 *
 * Ownership: values are the caller's; tables are constants. Threads: any. */
#ifndef SHOAL_CLI_RECIPE_OPTIONS_H
#define SHOAL_CLI_RECIPE_OPTIONS_H

#include "cli/options.h"

/* In the order in which they are applied: an optimiser brings its own rate, so it comes first. The place of shards does
 * not matter; it stands last so that hosted trainings can leave it out. */
typedef enum shoal_recipe_setting {
  SHOAL_RECIPE_OPTIMIZER,
  SHOAL_RECIPE_RATE,
  SHOAL_RECIPE_SCHEDULE,
  SHOAL_RECIPE_L2,
  SHOAL_RECIPE_CLIP,
  SHOAL_RECIPE_EPOCHS,
  SHOAL_RECIPE_BATCH,
  SHOAL_RECIPE_SEED,
  SHOAL_RECIPE_SHUFFLE,
  SHOAL_RECIPE_AUGMENT,
  SHOAL_RECIPE_EARLY_STOP,
  SHOAL_RECIPE_SHARDS,
  SHOAL_RECIPE_SETTINGS,
} shoal_recipe_setting;

/* The name of the flag, and of the setting in a model's text. */
extern const char *const shoal_recipe_settings[SHOAL_RECIPE_SETTINGS];

/* Writes the heading and the lines of the first `count` settings. A setting that is given goes to
 * values; the others stay as they are. */
void shoal_recipe_declare(const char **values, uint32_t count, shoal_option *lines);
#define SHOAL_RECIPE_LINES(count) ((count) + 1)

#endif
