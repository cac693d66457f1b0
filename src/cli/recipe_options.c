/* recipe_options.c: see recipe_options.h. */
#include "cli/recipe_options.h"

const char *const shoal_recipe_settings[SHOAL_RECIPE_SETTINGS] = {
    [SHOAL_RECIPE_OPTIMIZER] = "optimizer",
    [SHOAL_RECIPE_RATE] = "rate",
    [SHOAL_RECIPE_SCHEDULE] = "schedule",
    [SHOAL_RECIPE_L2] = "l2",
    [SHOAL_RECIPE_CLIP] = "clip",
    [SHOAL_RECIPE_EPOCHS] = "epochs",
    [SHOAL_RECIPE_BATCH] = "batch",
    [SHOAL_RECIPE_SEED] = "seed",
    [SHOAL_RECIPE_SHUFFLE] = "shuffle",
    [SHOAL_RECIPE_AUGMENT] = "augment",
    [SHOAL_RECIPE_EARLY_STOP] = "early-stop",
    [SHOAL_RECIPE_SHARDS] = "shards",
};

/* In the order of the help. */
static const struct {
  shoal_recipe_setting setting;
  const char *value, *help;
} rows[SHOAL_RECIPE_SETTINGS] = {
    {SHOAL_RECIPE_EPOCHS, "N", "passes over the data"},
    {SHOAL_RECIPE_BATCH, "N", "samples of a round"},
    {SHOAL_RECIPE_SEED, "N", "of all random numbers"},
    {SHOAL_RECIPE_OPTIMIZER, "WORDS", "as in the model's text: adam, \"momentum rate 0.1 momentum 0.9\""},
    {SHOAL_RECIPE_RATE, "R", "the learning rate"},
    {SHOAL_RECIPE_SCHEDULE, "WORDS", "how the rate changes: cosine, \"step every 10 factor 0.5\""},
    {SHOAL_RECIPE_L2, "X", "weight decay"},
    {SHOAL_RECIPE_CLIP, "NORM", "scale gradients down to this norm; helps when the loss explodes"},
    {SHOAL_RECIPE_SHARDS, "N", "parts of a round that threads can share; part of the result's last bits"},
    {SHOAL_RECIPE_SHUFFLE, "WORD",
     "all: every sample may come anywhere in an epoch; lanes: each part of the rounds keeps to its part of "
     "the data, so that of images a volunteer fetches no more than that, and of other data everything; all "
     "by "
     "default"},
    {SHOAL_RECIPE_AUGMENT, "WORDS",
     "change training images at random: \"flip crop 4\" mirrors each image with a chance of one half and "
     "shifts it by up to 4 pixels; none turns this off"},
    {SHOAL_RECIPE_EARLY_STOP, "N",
     "stop when the validation loss has not improved for N epochs, and keep the best weights"},
};

void shoal_recipe_declare(const char **values, uint32_t count, shoal_option *lines) {
  *lines++ = (shoal_option){.name = "Recipe (what the model's text says, unless given here)"};
  for (int i = 0; i < SHOAL_RECIPE_SETTINGS; i++)
    if (rows[i].setting < count)
      *lines++ = (shoal_option){.name = shoal_recipe_settings[rows[i].setting],
                                .value = rows[i].value,
                                .text = &values[rows[i].setting],
                                .help = rows[i].help};
}
