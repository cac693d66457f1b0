/* loaded.c: see loaded.h. */
#include "cli/loaded.h"

#include <string.h>

#include "agent/learner.h"
#include "cli/image_reading.h"

const char *const shoal_split_names[SHOAL_SPLITS + 1] = {
    [SHOAL_TRAIN] = "train", [SHOAL_VALID] = "valid", [SHOAL_TEST] = "test", NULL};

shoal_status shoal_loaded_open(shoal_loaded *out, const char *path, shoal_error *err) {
  *out = (shoal_loaded){.path = path};
  if (shoal_agent_is(path))
    return shoal_fail(
        err, SHOAL_INVALID,
        "%s is an agent, which acts: 'shoal agent play %s' shows it, and --episodes 100 scores it", path,
        path);
  shoal_status status = shoal_checkpoint_load(&out->checkpoint, path, err);
  if (status == SHOAL_OK) status = shoal_graph_create(&out->graph, out->checkpoint.model, err);
  return status;
}

shoal_status shoal_loaded_ready(shoal_loaded *loaded, uint32_t batch, uint32_t threads, shoal_error *err) {
  shoal_trainer_config config = {.graph = loaded->graph, .threads = threads, .batch = batch};
  shoal_status status = shoal_trainer_create(&loaded->trainer, &config, err);
  if (status != SHOAL_OK) return status;
  float *weights = shoal_trainer_state(loaded->trainer)->weights;
  return shoal_checkpoint_weights(&loaded->checkpoint, loaded->graph, weights, err);
}

const float *shoal_loaded_weights(const shoal_loaded *loaded) {
  return shoal_trainer_state(loaded->trainer)->weights;
}

void shoal_loaded_release(shoal_loaded *loaded) {
  shoal_trainer_destroy(loaded->trainer);
  shoal_graph_destroy(loaded->graph);
  shoal_checkpoint_release(&loaded->checkpoint);
}

/* The split that was asked for, or the first of test, valid and train that has samples. */
static shoal_status choose_split(const shoal_dataset *dataset, const shoal_loaded_data *asked,
                                 shoal_split *split, shoal_error *err) {
  if (asked->split) {
    for (int i = 0; i < SHOAL_SPLITS; i++) {
      if (strcmp(asked->split, shoal_split_names[i]) == 0) *split = (shoal_split)i;
    }
    if (shoal_dataset_samples(dataset, *split) > 0) return SHOAL_OK;
    return shoal_fail(err, SHOAL_INVALID, "%s has no %s samples%s", asked->data, asked->split,
                      *split == SHOAL_VALID ? "; --valid SHARE holds out what training held out" : "");
  }
  static const shoal_split order[] = {SHOAL_TEST, SHOAL_VALID, SHOAL_TRAIN};
  for (size_t i = 0; i < SHOAL_SPLITS; i++) {
    *split = order[i];
    if (shoal_dataset_samples(dataset, *split) > 0) return SHOAL_OK;
  }
  return shoal_fail(err, SHOAL_INVALID, "%s has no samples", asked->data);
}

/* A data set could not be opened. Where it is what the model keeps of its own data that cannot be
 * read, the checkpoint is at fault and has to be named. */
static shoal_status blame(const shoal_loaded *loaded, shoal_status status, shoal_error *err) {
  const char *fitted = loaded->checkpoint.data_json;
  shoal_dataset *probe;
  shoal_error own;
  if (!fitted) return status;
  shoal_status own_status = shoal_dataset_open_fitted(&probe, fitted, &own);
  if (own_status == SHOAL_OK) {
    shoal_dataset_close(probe);
    return status;
  }
  return shoal_fail(err, own_status, "%s: %.900s", loaded->path, own.text);
}

shoal_status shoal_loaded_source(const shoal_loaded *loaded, const shoal_loaded_data *asked,
                                 shoal_dataset **dataset, shoal_split *split, shoal_source *source,
                                 shoal_error *err) {
  const shoal_model *model = loaded->checkpoint.model;
  shoal_dataset_options options = {.data = asked->data,
                                   .target = asked->target,
                                   .valid_share = asked->valid_share,
                                   .data_dir = asked->data_dir,
                                   .unlabeled = asked->unlabeled,
                                   .more = asked->more,
                                   .more_count = asked->more_count,
                                   .fitted_json = loaded->checkpoint.data_json};
  shoal_image_reading reading;
  shoal_image_reading_begin(&reading, &options, asked->text);
  shoal_status status = shoal_dataset_open(dataset, &options, model, err);
  shoal_image_reading_end(&reading, *dataset);
  if (status != SHOAL_OK) return blame(loaded, status, err);
  status = choose_split(*dataset, asked, split, err);
  if (status == SHOAL_OK)
    status = shoal_dataset_source(*dataset, *split, asked->batch, model->recipe.seed, source, err);
  return status;
}
