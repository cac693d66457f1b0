/* options.c: see options.h. Parsing first, then the help. */
#include "cli/options.h"

#include <string.h>

#include "base/assert.h"

enum { OPTIONS_MAX = 64 };

static bool is_heading(const shoal_option *option) {
  return !option->flag && !option->text && !option->whole && !option->real;
}

/* ---- parsing ------------------------------------------------------------------------ */

static const shoal_option *find(const shoal_usage *usage, const char *name, size_t length) {
  for (size_t i = 0; i < usage->options_count; i++) {
    const shoal_option *option = &usage->options[i];
    if (!is_heading(option) && strlen(option->name) == length && memcmp(option->name, name, length) == 0)
      return option;
  }
  return NULL;
}

/* Whether a word is one of the command's options and not, say, a negative number. */
static bool is_known_option(const shoal_usage *usage, const char *word) {
  if (strncmp(word, "--", 2) != 0) return false;
  size_t length = strcspn(word + 2, "=");
  return find(usage, word + 2, length) != NULL || strcmp(word, "--help") == 0;
}

int shoal_options_shown(const char *word) { return (int)strcspn(word, "#"); }

/* What users of other programs type. The first of these that the command has is meant. */
static const shoal_synonyms synonyms[] = {
    {"rate", "lr learning-rate base-lr initial-lr"},
    {"epochs", "e n-epochs num-epochs nb-epoch max-epochs num-train-epochs iters iterations"},
    {"batch", "b bs batch-size mini-batch minibatch train-batch-size per-device-train-batch-size"},
    {"optimizer", "opt optim solver"},
    {"schedule", "scheduler lr-schedule lr-scheduler lr-scheduler-type lr-decay learning-rate-decay"},
    {"l2", "wd weight-decay regularization"},
    {"clip", "grad-clip gradient-clip gradient-clip-val clip-norm clip-grad clip-grad-norm max-grad-norm"},
    {"early-stop", "patience early-stopping"},
    {"seed", "random-seed random-state manual-seed rng-seed"},
    {"valid", "val valid-split val-split val-size test-size validation-split validation-size"},
    {"data", "d dataset datasets data-path dataset-path train train-data train-file"},
    {"data-dir", "data-root dataset-dir"},
    {"target", "y label labels label-column target-column class-column"},
    {"resume", "checkpoint ckpt load weights pretrained resume-from resume-from-checkpoint restore"},
    {"out", "o output output-dir output-file save save-path save-dir save-model checkpoint-dir model-dir"},
    {"output", "o out output-file"},
    {"input", "i image images file files input-file"},
    {"augment", "augmentation augmentations data-augmentation transform transforms"},
    {"save-every", "save-freq save-steps save-interval checkpoint-interval"},
    {"log-dir", "logdir tensorboard tb-dir logging-dir"},
    {"threads", "j jobs n-jobs num-workers num-threads n-threads nproc cpus cores"},
    {"cores", "j jobs n-jobs num-workers num-threads n-threads nproc cpus threads"},
    {"workers", "world-size nproc-per-node nnodes num-nodes num-processes"},
    {"quiet", "q silent"},
    {"budget", "time max-time time-limit time-budget timeout"},
    {"seconds", "time max-time time-limit time-budget timeout"},
    {"trials", "max-trials n-trials num-trials n-iter"},
    {"metric", "scoring objective measure eval-metric"},
    {"env", "env-id environment gym-id game"},
    {"steps", "timesteps total-timesteps n-timesteps num-steps max-steps"},
    {"algorithm", "algo"},
    {"listen", "p port bind address host hostname"},
    {"server", "url link address"},
    {"prompt", "text start start-text"},
    {"length", "max-length max-tokens max-new-tokens num-tokens n-tokens"},
    {"onnx", "format onnx-file o out output output-file"},
    {"certificate", "cert crt ssl-cert tls-cert ssl-certfile"},
    {"tls", "https ssl"},
    {"temperature", "t temp"},
    {"folds", "cv k-fold kfold n-folds num-folds cross-validation"},
};

/* What has no option: an option that the command must have for the advice to hold, and the advice. */
static const struct {
  const char *with, *theirs, *advice;
} elsewhere[] = {
    {"threads", "device gpu gpus cuda no-cuda use-cuda accelerator cpu",
     "Shoal computes on CPUs only; --threads says on how many"},
    {"threads", "amp fp16 bf16 half mixed-precision precision",
     "everything is computed in 32-bit floats, with the same result on every machine"},
    {"quiet", "v verbose", "everything is printed already; --quiet prints less"},
    {"set",
     "lr learning-rate rate gamma discount batch batch-size clip-range ent-coef gae-lambda n-envs "
     "buffer-size hidden net-arch",
     "settings of the algorithm are given with --set, such as --set rate=0.0003"},
    {"space",
     "lr learning-rate rate batch batch-size optimizer dropout hidden hidden-size layers activation units",
     "the search chooses this setting itself; --space limits what it may choose from"},
    {"optimizer", "momentum nesterov",
     "give it with the optimizer: --optimizer \"momentum rate 0.01 momentum 0.9\""},
    {"optimizer", "beta1 beta2 betas eps epsilon adam-beta1 adam-beta2",
     "give it with the optimizer: --optimizer \"adam rate 0.001 beta1 0.9\""},
    {"optimizer", "loss criterion", "the loss is a line of the model's text: `loss cross-entropy`"},
    {"optimizer", "warmup warmup-steps warmup-epochs", "it is a line of the model's text: `warmup 1`"},
    {"optimizer", "class-weight class-weights", "it is a line of the model's text: `class-weights balanced`"},
    {"l2", "decay", "weight decay is --l2; how the learning rate falls is --schedule"},
    {"augment", "flip hflip horizontal-flip random-flip crop random-crop",
     "images are changed with --augment: --augment flip, --augment \"flip crop 4\""},
    {"save-every", "eval-every eval-steps eval-freq eval-interval val-every validate-every eval-strategy",
     "the model is evaluated after every epoch"},
    {"save-every", "callback callbacks", "there are --early-stop, --save-every and --log-dir"},
    {"log-dir", "wandb use-wandb wandb-project mlflow report-to", "--log-dir writes TensorBoard files"},
    {"optimizer", "gradient-accumulation-steps grad-accum accumulate-grad-batches accum-steps",
     "--batch says how many samples a step sees in all"},
    {"epochs", "steps max-steps num-steps n-steps total-steps train-steps",
     "--epochs says how long: in passes over the data"},
    {"worker-hosts", "master-addr master-port rank local-rank node-rank backend hosts hostfile",
     "`shoal launch` starts a training on many machines"},
    {"optimizer", "init initializer weight-init kernel-initializer",
     "it is a word of a layer's line in the model's text: `dense 128 relu init he`"},
    {"optimizer", "dropout", "it is a line of the model's text: `dropout 0.5`"},
    {"optimizer", "metrics metric",
     "the metric follows from the loss: accuracy, perplexity or error is always printed"},
    {"optimizer", "hidden hidden-size hidden-dim num-layers layers activation units",
     "the layers are lines of the model's text: `dense 128 relu`"},
    {"optimizer", "m model arch net network config",
     "give the model file without an option: shoal train MODEL.net"},
    {"split", "m model net checkpoint ckpt weights load", "give the model file without an option"},
    {"split", "i input test test-data file image images", "--data says which samples"},
    {"onnx", "m model i input checkpoint", "give the model file without an option"},
    {"table", "d data dataset train train-data csv file input",
     "give the table without an option: shoal search FILE.csv"},
    {"algorithm", "episodes n-episodes num-episodes max-episodes", "--steps or --seconds says how long"},
    {"algorithm", "render render-mode", "`shoal agent play` shows what an agent has learned"},
    {"pause-load", "server url link address connect", "give the link without an option: shoal work LINK"},
    {"token-file", "t token api-key", "a token is the end of the link, LINK/#t=TOKEN, or in --token-file"},
    {"public-url", "t token auth password api-key",
     "the server makes tokens itself; the admin's link is in the file admin.link of --data-dir"},
};

static const char *advice_for(const shoal_usage *usage, const char *name, size_t length) {
  for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
    if (shoal_word_listed(elsewhere[i].theirs, name, length) &&
        find(usage, elsewhere[i].with, strlen(elsewhere[i].with)))
      return elsewhere[i].advice;
  return NULL;
}

static void unknown_option(const shoal_usage *usage, const char *word, shoal_error *err) {
  static const char gives_away[] = "open yes"; /* no slip of the pen is answered with these */
  const char *names[OPTIONS_MAX];
  size_t count = 0;
  for (size_t i = 0; i < usage->options_count; i++) {
    const char *known = usage->options[i].name;
    if (!is_heading(&usage->options[i]) && !shoal_word_listed(gives_away, known, strlen(known)))
      names[count++] = known;
  }
  names[count++] = "help";
  size_t dashes = strspn(word, "-");
  size_t length = strcspn(word, "=#");
  const char *name = word + dashes;
  size_t name_length = length > dashes ? length - dashes : 0;
  const char *near =
      shoal_synonym(name, name_length, synonyms, sizeof synonyms / sizeof synonyms[0], names, count);
  const char *advice = near ? NULL : advice_for(usage, name, name_length);
  if (!near) near = shoal_nearest(name, name_length, names, count);
  if (advice)
    shoal_fail(err, SHOAL_INVALID, "unknown option '%.*s'; %s", (int)length, word, advice);
  else if (near)
    shoal_fail(err, SHOAL_INVALID, "unknown option '%.*s'; did you mean '--%s'?", (int)length, word, near);
  else
    shoal_fail(err, SHOAL_INVALID, "unknown option '%.*s'", (int)length, word);
}

static bool store_choice(const shoal_option *option, const char *value, shoal_error *err) {
  shoal_text list;
  shoal_text_init(&list);
  for (size_t i = 0; option->choices[i]; i++) {
    if (strcmp(option->choices[i], value) == 0) {
      *option->text = option->choices[i];
      shoal_text_release(&list);
      return true;
    }
    const char *between = i == 0 ? "" : option->choices[i + 1] ? ", " : " or ";
    shoal_text_addf(&list, "%s%s", between, option->choices[i]);
  }
  shoal_fail(err, SHOAL_INVALID, "--%s: '%.*s' is not one of %s", option->name, shoal_options_shown(value),
             value, list.bytes ? list.bytes : "");
  shoal_text_release(&list);
  return false;
}

static bool store_whole(const shoal_option *option, const char *value, shoal_error *err) {
  uint64_t number;
  size_t digits = strspn(value, "0123456789");
  bool is_whole = digits > 0 && value[digits] == 0;
  if (!is_whole) {
    shoal_fail(err, SHOAL_INVALID, "--%s: '%.*s' is not a whole number", option->name,
               shoal_options_shown(value), value);
    return false;
  }
  if (!shoal_read_u64(value, digits, &number) || number < option->whole_min || number > option->whole_max) {
    shoal_fail(err, SHOAL_INVALID, "--%s: %s is out of range; it takes %llu to %llu", option->name, value,
               (unsigned long long)option->whole_min, (unsigned long long)option->whole_max);
    return false;
  }
  *option->whole = number;
  return true;
}

static bool store_real(const shoal_option *option, const char *value, shoal_error *err) {
  double number;
  if (!shoal_read_f64(value, strlen(value), &number)) {
    bool is_time = strcmp(option->value, "SECONDS") == 0;
    shoal_fail(err, SHOAL_INVALID, "--%s: '%.*s' is not a number%s", option->name, shoal_options_shown(value),
               value, is_time ? " of seconds" : "");
    return false;
  }
  if (number < option->real_min || number > option->real_max) {
    shoal_fail(err, SHOAL_INVALID, "--%s: %s is out of range; it takes %.15g to %.15g", option->name, value,
               option->real_min, option->real_max);
    return false;
  }
  *option->real = number;
  return true;
}

static bool store(const shoal_option *option, const char *value, shoal_error *err) {
  if (option->whole) return store_whole(option, value, err);
  if (option->real) return store_real(option, value, err);
  if (option->choices) return store_choice(option, value, err);
  if (!value[0]) {
    shoal_fail(err, SHOAL_INVALID, "--%s: the value is empty", option->name);
    return false;
  }
  *option->text = value;
  return true;
}

/* Whoever says two lists means both, and would get the second. */
static bool is_second_list(const shoal_usage *usage, const shoal_option *option, bool given[OPTIONS_MAX],
                           shoal_error *err) {
  bool *is_given = &given[option - usage->options];
  if (*is_given && strcmp(option->value, "LIST") == 0) {
    shoal_fail(err, SHOAL_INVALID, "--%s was given twice; put all of it into one, with commas", option->name);
    return true;
  }
  *is_given = true;
  return false;
}

/* Reads the option at argv[*i], which starts with two dashes, and its value. */
static bool parse_option(const shoal_usage *usage, int argc, char *const *argv, int *i,
                         bool given[OPTIONS_MAX], shoal_error *err) {
  const char *name = argv[*i] + 2;
  size_t length = strcspn(name, "=");
  const char *value = name[length] == '=' ? name + length + 1 : NULL;
  const shoal_option *option = find(usage, name, length);
  if (!option) {
    unknown_option(usage, argv[*i], err);
    return false;
  }
  if (option->flag) {
    if (value) {
      shoal_fail(err, SHOAL_INVALID, "--%s takes no value", option->name);
      return false;
    }
    *option->flag = true;
    return true;
  }
  if (!value) {
    /* A value may start with dashes, but taking the next option for one would only put
     * the complaint in the wrong place. */
    bool missing = *i + 1 >= argc || is_known_option(usage, argv[*i + 1]);
    if (missing) {
      shoal_fail(err, SHOAL_INVALID, "--%s needs a value: --%s %s", option->name, option->name,
                 option->value);
      return false;
    }
    value = argv[++*i];
  }
  return !is_second_list(usage, option, given, err) && store(option, value, err);
}

static bool add_operand(const shoal_usage *usage, const char *word, shoal_operands *operands,
                        shoal_error *err) {
  if (operands->count == usage->operands_max) {
    shoal_fail(err, SHOAL_INVALID, "unexpected argument '%.*s'%s", shoal_options_shown(word), word,
               operands->count == SHOAL_OPERANDS_MAX ? ": too many files; give the folder that they are in"
                                                     : "");
    return false;
  }
  operands->at[operands->count++] = word;
  return true;
}

shoal_parsed shoal_options_parse(const shoal_usage *usage, int argc, char *const *argv,
                                 shoal_operands *operands, shoal_error *err) {
  SHOAL_ASSERT(usage->options_count < OPTIONS_MAX);
  SHOAL_ASSERT(usage->operands_max <= SHOAL_OPERANDS_MAX);
  operands->count = 0;
  memset(operands->at, 0, (usage->operands_max > 0 ? usage->operands_max : 1) * sizeof operands->at[0]);
  bool only_operands = false, given[OPTIONS_MAX] = {false};
  for (int i = 0; i < argc; i++) {
    const char *word = argv[i];
    bool is_operand = only_operands || word[0] != '-' || word[1] == 0;
    if (is_operand) {
      if (!add_operand(usage, word, operands, err)) return SHOAL_PARSED_WRONG;
    } else if (strcmp(word, "--") == 0) {
      only_operands = true;
    } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
      return SHOAL_PARSED_HELP;
    } else if (word[1] != '-') {
      unknown_option(usage, word, err);
      return SHOAL_PARSED_WRONG;
    } else if (!parse_option(usage, argc, argv, &i, given, err)) {
      return SHOAL_PARSED_WRONG;
    }
  }
  if (operands->count < usage->operands_min) {
    shoal_fail(err, SHOAL_INVALID, "%s is missing", usage->operand);
    return SHOAL_PARSED_WRONG;
  }
  return SHOAL_PARSED;
}

/* ---- help --------------------------------------------------------------------------- */

/* Adds words, breaking lines at `width` and starting each new one at `indent`. `column` is
 * where the current line stands. A newline in the words ends the line too. */
static void add_wrapped(shoal_text *out, const char *words, uint32_t column, uint32_t indent,
                        uint32_t width) {
  bool line_is_empty = true;
  while (*words) {
    size_t length = strcspn(words, " \n");
    if (!line_is_empty && column + 1 + length > width) {
      shoal_text_addf(out, "\n%*s", (int)indent, "");
      column = indent;
      line_is_empty = true;
    }
    if (!line_is_empty) {
      shoal_text_add(out, " ", 1);
      column++;
    }
    shoal_text_add(out, words, length);
    column += (uint32_t)length;
    line_is_empty = false;
    words += length;
    if (*words == '\n' && words[1]) {
      shoal_text_addf(out, "\n%*s", words[1] == '\n' ? 0 : (int)indent, "");
      column = indent;
      line_is_empty = true;
    }
    if (*words) words++;
  }
  shoal_text_add(out, "\n", 1);
}

static void add_option(shoal_text *out, const shoal_option *option, uint32_t indent, uint32_t width) {
  size_t start = out->length;
  shoal_text_addf(out, "  --%s", option->name);
  if (option->value) shoal_text_addf(out, " %s", option->value);
  size_t length = out->length - start;
  if (length + 2 > indent) {
    shoal_text_add(out, "\n", 1);
    length = 0;
  }
  shoal_text_addf(out, "%*s", (int)(indent - length), "");
  add_wrapped(out, option->help, indent, indent, width);
}

shoal_status shoal_options_read_time(const char *flag, const char *word, double *seconds, shoal_error *err) {
  static const double seconds_max = 1e8;
  size_t length = strlen(word);
  double number;
  if (shoal_read_f64(word, length, &number) && number > 0)
    return shoal_fail(err, SHOAL_INVALID, "%s: %.20s lacks its unit; write %.20ss, %.20sm or %.20sh", flag,
                      word, word, word, word);
  char letter = length > 0 ? word[length - 1] : 0;
  double unit = letter == 's' ? 1 : letter == 'm' ? 60 : letter == 'h' ? 3600 : 0;
  if (unit == 0 || !shoal_read_f64(word, length - 1, &number) ||
      !(number > 0 && number * unit <= seconds_max))
    return shoal_fail(err, SHOAL_INVALID, "%s: '%.40s' is no time; write 90s, 10m or 2h", flag, word);
  *seconds = number * unit;
  return SHOAL_OK;
}

void shoal_options_help(const shoal_usage *usage, uint32_t width, shoal_text *out) {
  enum { INDENT = 23 };
  if (width > 100) width = 100;
  if (width < INDENT + 20) width = INDENT + 20;

  for (size_t i = 0; usage->synopses[i]; i++)
    shoal_text_addf(out, "%s shoal %s %s\n", i == 0 ? "Usage:" : "   or:", usage->command,
                    usage->synopses[i]);
  shoal_text_add(out, "\n", 1);
  add_wrapped(out, usage->about, 0, 0, width);

  bool any_heading = usage->options_count > 0 && is_heading(&usage->options[0]);
  if (!any_heading) shoal_text_addf(out, "\nOptions:\n");
  for (size_t i = 0; i < usage->options_count; i++) {
    if (is_heading(&usage->options[i]))
      shoal_text_addf(out, "\n%s:\n", usage->options[i].name);
    else
      add_option(out, &usage->options[i], INDENT, width);
  }
  add_option(out, &(shoal_option){.name = "help", .help = "this text"}, INDENT, width);
  shoal_text_addf(out, "\nExamples:\n%s", usage->examples);
}
