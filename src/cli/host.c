/* host.c: shoal host: submits a training, a search or an agent to a server, follows it, and brings back what
 * comes of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_at.h"
#include "cli/cli.h"
#include "cli/host_agent.h"
#include "cli/host_search.h"
#include "cli/hosted.h"
#include "cli/recipe_options.h"
#include "cli/stop.h"
#include "cli/upload.h"
#include "nn/model.h"
#include "server/search_spec.h"

enum { NAME_BYTES = SHOAL_SPEC_NAME_MAX + 1 };
static const uint64_t JSON_WHOLE_MAX = UINT64_C(1) << 53; /* larger ones are not exact as numbers of JSON */

static const double LOOK_S = 2, LOOK_EVERY_S = 0.2; /* --detach: at a job that may fail at once */

/* Settings of the recipe are passed on as they are: the server checks them. */
enum { SETTINGS = SHOAL_RECIPE_SHARDS };

typedef struct host_options {
  shoal_remote_options api;
  const char *what; /* the model's text, or a table; NULL: an agent */
  const char *data, *data_name, *data_dir, *target, *name, *mode, *wire, *rule, *workers, *out;
  const char *settings[SETTINGS]; /* as given, or NULL */
  char flag[24];
  double valid_share;
  bool is_private, no_audits, detach, json, quiet;
  uint32_t workers_min, workers_max; /* 0: not given */
  bool is_agent, is_search;          /* neither: a training */
  shoal_host_search search;
  shoal_host_agent agent;
} host_options;

static bool parse(host_options *o, int argc, char **argv, int *status) {
  static const char *const wires[] = {"f32", "bf16", "int8", "topk", NULL};
  const shoal_option data[] = {
      {.name = "Data"},
      {.name = "data",
       .value = "SET",
       .text = &o->data,
       .help =
           "what to train on: a data set of the server, or one of this machine as in shoal train, which is "
           "sent there first"},
      {.name = "data-name", .value = "NAME", .text = &o->data_name, .help = "what it is called there"},
      {.name = "target",
       .value = "COLUMN",
       .text = &o->target,
       .help = "CSV: the column to predict; a training's is by default the one that the set was made for, "
               "which is the last one unless its owner said otherwise"},
      {.name = "valid",
       .value = "SHARE",
       .real = &o->valid_share,
       .real_max = 0.9,
       .help = "hold out this share of the training samples for validation"},
      {.name = "data-dir",
       .value = "FOLDER",
       .text = &o->data_dir,
       .help = "where named sets are kept here; ~/.local/share/shoal by default"},
  };
  const shoal_option own[] = {
      {.name = "Together"},
      {.name = "mode",
       .value = "MODE",
       .text = &o->mode,
       .help = "sync, stale:N, async or local:H; sync by default"},
      {.name = "wire",
       .value = "FORMAT",
       .text = &o->wire,
       .choices = wires,
       .help = "how contributions travel: f32, bf16, int8 or topk; f32 by default"},
      {.name = "rule",
       .value = "RULE",
       .text = &o->rule,
       .help =
           "how the contributions of a round, which are its parts, become one: mean, median, trimmed:0.2, "
           "krum:1, multi-krum:1 or clip; mean by default, and all others take some wrong ones, where there "
           "are parts enough ('shards N' in the model)"},
      {.name = "no-audits",
       .flag = &o->no_audits,
       .help = "compute no unit a second time: for volunteers who are known not to send wrong results"},
      {.name = "workers",
       .value = "MIN-MAX",
       .text = &o->workers,
       .help = "begin with MIN workers and take at most MAX; 1-1000 by default"},
      {.name = "private", .flag = &o->is_private, .help = "only workers with an invitation to this job"},

      {.name = "Run"},
      {.name = "name",
       .value = "NAME",
       .text = &o->name,
       .help = "of the job; the model's, the table's or the environment's by default"},
      {.name = "out",
       .value = "FILE",
       .text = &o->out,
       .help = "where the model goes; by default the job's name with .safetensors, in this folder"},
      {.name = "detach", .flag = &o->detach, .help = "submit, and do not wait"},
      {.name = "json", .flag = &o->json, .help = "print events as JSON lines"},
      {.name = "quiet", .flag = &o->quiet, .help = "print nothing but errors"},
      {.name = "Server"},
  };
  enum { AGENT = SHOAL_HOST_SEARCH_OPTIONS, DATA = AGENT + SHOAL_HOST_AGENT_OPTIONS };
  enum { RECIPE = DATA + sizeof data / sizeof data[0], OWN = RECIPE + SHOAL_RECIPE_LINES(SETTINGS) };
  enum { SERVER = OWN + sizeof own / sizeof own[0], ALL = SERVER + SHOAL_REMOTE_OPTIONS };
  shoal_option options[ALL];
  shoal_host_search_declare(&o->search, options);
  shoal_host_agent_declare(&o->agent, options + AGENT);
  memcpy(options + DATA, data, sizeof data);
  shoal_recipe_declare(o->settings, SETTINGS, options + RECIPE);
  memcpy(options + OWN, own, sizeof own);
  shoal_remote_declare(&o->api, options + SERVER);
  const shoal_usage usage = {
      .command = "host",
      .synopses = (const char *[]){"MODEL.net --data SET [OPTION...]",
                                   "TABLE.csv --target COLUMN [--budget TIME] [OPTION...]",
                                   "--env NAME [--seconds S] [OPTION...]", NULL},
      .about =
          "Has a network trained by the volunteers of a server ('shoal work'), or the best one for a table "
          "searched for, as 'shoal search' does it on one machine, or an agent, as 'shoal agent train' does; "
          "follows the job and brings the model "
          "back. A table is a CSV file of this machine, or a data set of the server. Ctrl-C stops "
          "following; the job continues.",
      .operand = "MODEL.net or TABLE.csv",
      .operands_max = 1,
      .options = options,
      .options_count = ALL,
      .examples =
          "  shoal host examples/lenet5.net --data fashion-mnist\n"
          "  shoal host examples/lenet5.net --data fashion-mnist --epochs 3 --workers 2-8 --detach\n"
          "  shoal host examples/income.csv --target income --budget 2m --out best.safetensors\n"
          "  shoal host --env CartPole-v1 --seconds 60\n"
          "  shoal host novel.net --data chars:novel.txt --server 'https://lab.example:8443/#t=TOKEN'\n",
  };
  shoal_operands operands;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, status)) return false;
  o->what = operands.count > 0 ? operands.at[0] : NULL;
  o->is_agent = o->agent.said.env != NULL;
  return true;
}

/* ---- checks ---- */

/* "2", "2-8", "2-". */
static shoal_status read_workers(host_options *o, shoal_error *err) {
  if (!o->workers) return SHOAL_OK;
  size_t length = strlen(o->workers), dash = strcspn(o->workers, "-");
  uint64_t least = 0, most = SHOAL_SPEC_WORKERS_MAX;
  bool good = shoal_read_u64(o->workers, dash, &least);
  if (good && dash < length - 1) good = shoal_read_u64(o->workers + dash + 1, length - dash - 1, &most);
  if (!good || least < 1 || most < least || most > SHOAL_SPEC_WORKERS_MAX)
    return shoal_fail(err, SHOAL_INVALID, "--workers: '%.40s' is not MIN-MAX, such as 2-8; at most %d",
                      o->workers, SHOAL_SPEC_WORKERS_MAX);
  o->workers_min = (uint32_t)least;
  o->workers_max = (uint32_t)most;
  return SHOAL_OK;
}

/* A link in the wrong place would be looked for on disk, and told of with its token. */
static shoal_status refuse_link(const char *what, const char *word, shoal_error *err) {
  if (strstr(word, "://") == NULL) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID, "%s: '%.*s' is a link; the server's is given with --server", what,
                    shoal_options_shown(word), word);
}

static bool ends_in(const char *name, const char *end) {
  size_t length = strlen(name), end_length = strlen(end);
  return length > end_length && strcmp(name + length - end_length, end) == 0;
}

/* The first option that was given and is for trainings alone, which stays in *o; NULL: none. */
static const char *given_of_trainings(host_options *o) {
  const struct {
    const char *name;
    bool given;
  } others[] = {{"--mode", o->mode}, {"--wire", o->wire}, {"--rule", o->rule}, {"--no-audits", o->no_audits}};
  for (int i = 0; i < SETTINGS; i++) {
    if (o->settings[i] == NULL || i == SHOAL_RECIPE_EPOCHS || i == SHOAL_RECIPE_SEED) continue;
    snprintf(o->flag, sizeof o->flag, "--%s", shoal_recipe_settings[i]);
    return o->flag;
  }
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (others[i].given) return others[i].name;
  return NULL;
}

/* Likewise, for what has data. */
static const char *given_of_data(const host_options *o) {
  if (o->settings[SHOAL_RECIPE_EPOCHS]) return "--epochs";
  if (o->data) return "--data";
  if (o->data_name) return "--data-name";
  if (o->target) return "--target";
  return o->valid_share > 0 ? "--valid" : NULL;
}

static shoal_status check_agent(host_options *o, shoal_error *err) {
  const char *given = shoal_host_search_given(&o->search);
  if (o->what)
    return shoal_fail(err, SHOAL_INVALID,
                      "--env has an agent trained, and needs no '%.*s'; its layers are given with --model",
                      shoal_options_shown(o->what), o->what);
  if (!given) given = given_of_trainings(o);
  if (!given) given = given_of_data(o);
  if (given)
    return shoal_fail(err, SHOAL_INVALID,
                      "%s is not for an agent, which --env asks for; --set says how an agent learns", given);
  return shoal_host_agent_read(&o->agent, err);
}

/* What is said of trainings alone, of searches alone, and of agents alone. */
static shoal_status check_kind(host_options *o, shoal_error *err) {
  const char *given = shoal_host_agent_given(&o->agent);
  if (given) return shoal_fail(err, SHOAL_INVALID, "%s is for an agent: shoal host --env NAME", given);
  given = shoal_host_search_given(&o->search);
  if (!o->is_search && given)
    return shoal_fail(err, SHOAL_INVALID,
                      "%s is for a search, of a table: shoal host TABLE.csv --target COLUMN, without --data",
                      given);
  if (!o->is_search) return SHOAL_OK;
  given = given_of_trainings(o);
  if (given)
    return shoal_fail(
        err, SHOAL_INVALID,
        "%s is for a training: shoal host MODEL.net --data SET; --space says what a search may try", given);
  if (!o->target)
    return shoal_fail(
        err, SHOAL_INVALID,
        "--target is missing: the column to predict (or, of a network, --data: what to train on)");
  return SHOAL_OK;
}

/* A network needs data, a table is some. */
static shoal_status check_what(host_options *o, shoal_error *err) {
  if (!o->what)
    return shoal_fail(err, SHOAL_INVALID, "MODEL.net or TABLE.csv is missing (or, of an agent, --env NAME)");
  o->is_search = !o->data && !ends_in(o->what, ".net");
  shoal_status status = refuse_link("MODEL.net", o->what, err);
  if (status == SHOAL_OK && o->data) status = refuse_link("--data", o->data, err);
  if (status != SHOAL_OK) return status;
  if (!o->data && !o->is_search)
    return shoal_fail(err, SHOAL_INVALID, "--data is missing: it says what to train on");
  status = check_kind(o, err);
  return status == SHOAL_OK && o->is_search ? shoal_host_search_read(&o->search, err) : status;
}

static shoal_status check(host_options *o, shoal_error *err) {
  shoal_status status = o->is_agent ? check_agent(o, err) : check_what(o, err);
  if (status == SHOAL_OK && o->detach && o->out)
    return shoal_fail(
        err, SHOAL_INVALID,
        "--out and --detach exclude each other: with --detach no model comes back; 'shoal job get' gets it");
  return status == SHOAL_OK ? read_workers(o, err) : status;
}

/* Whether a name may have such a character, in its middle. Of a character with several bytes all are good. */
static bool may_be_in_name(char c) {
  const char name[] = {'x', (unsigned char)c < 0x80 ? c : 'x', 'x', 0};
  return shoal_spec_name_is_good(name);
}

/* The file's name without folder and ending, as the name of a job may be. */
static void name_after(const char *file, char out[NAME_BYTES]) {
  const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
  size_t length = strcspn(base, ".");
  shoal_spec_name_shorten(out, NAME_BYTES, base, length);
  for (char *c = out; *c; c++)
    if (!may_be_in_name(*c)) *c = '-';
  if (!shoal_spec_name_is_good(out)) snprintf(out, NAME_BYTES, "model");
}

/* Reads the text, and checks it here already, where errors can name the file. */
static shoal_status read_model(const char *path, uint8_t **text, shoal_error *err) {
  shoal_model *model;
  size_t length;
  shoal_status status = shoal_file_read(path, SHOAL_SPEC_MODEL_MAX, false, text, &length, err);
  if (status == SHOAL_OK) status = shoal_model_parse(&model, path, (char *)*text, length, err);
  if (status == SHOAL_OK) shoal_model_destroy(model);
  return status;
}

/* ---- submitting ---- */

/* A number as a number; words, and what JSON's numbers cannot hold, as a text. */
static void add_setting(shoal_json *json, const char *field, const char *value) {
  uint64_t whole;
  double real;
  bool is_whole = shoal_read_u64(value, strlen(value), &whole);
  if (is_whole && whole <= JSON_WHOLE_MAX)
    shoal_json_int(json, field, (int64_t)whole);
  else if (!is_whole && shoal_read_f64(value, strlen(value), &real))
    shoal_json_real(json, field, real);
  else
    shoal_json_text(json, field, value);
}

static void write_training(const host_options *o, const char *model, shoal_json *json) {
  shoal_json_text(json, "model", model);
  for (int i = 0; i < SETTINGS; i++)
    if (o->settings[i])
      add_setting(json, i == SHOAL_RECIPE_EARLY_STOP ? "early_stop" : shoal_recipe_settings[i],
                  o->settings[i]);
  shoal_json_text(json, "mode", o->mode ? o->mode : "sync");
  shoal_json_text(json, "wire", o->wire ? o->wire : "f32");
  if (o->rule) shoal_json_text(json, "rule", o->rule);
  if (o->no_audits) shoal_json_bool(json, "guard", false);
}

static void write_search(const host_options *o, shoal_json *json) {
  shoal_host_search_write(&o->search, json);
  if (o->settings[SHOAL_RECIPE_EPOCHS]) add_setting(json, "epochs", o->settings[SHOAL_RECIPE_EPOCHS]);
  if (o->settings[SHOAL_RECIPE_SEED]) add_setting(json, "seed", o->settings[SHOAL_RECIPE_SEED]);
}

static void write_agent(const host_options *o, shoal_json *json) {
  shoal_host_agent_write(&o->agent, json);
  if (o->settings[SHOAL_RECIPE_SEED]) add_setting(json, "seed", o->settings[SHOAL_RECIPE_SEED]);
}

/* model: its text, of a training; data: "" for an agent. */
static void write_job(const host_options *o, const char *name, const char *model, const char *data,
                      shoal_text *out) {
  shoal_json json;
  shoal_json_init(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "name", name);
  if (data[0]) shoal_json_text(&json, "data", data);
  if (o->target) shoal_json_text(&json, "target", o->target);
  if (o->valid_share > 0) shoal_json_real(&json, "valid", o->valid_share);
  if (o->is_agent)
    write_agent(o, &json);
  else if (o->is_search)
    write_search(o, &json);
  else
    write_training(o, model, &json);
  if (o->workers_min > 0) shoal_json_int(&json, "workers_min", o->workers_min);
  if (o->workers_max > 0) shoal_json_int(&json, "workers_max", o->workers_max);
  if (o->is_private) shoal_json_bool(&json, "private", true);
  shoal_json_close(&json, '}');
}

/* A rule that cannot work on the parts of a round, or does nothing with them. */
static shoal_status check_rule(const shoal_spec *spec, shoal_error *err) {
  char advice[SHOAL_RULE_ADVICE_MAX];
  uint32_t contributions = shoal_spec_contributions(spec);
  shoal_status status = contributions > 0 ? shoal_rule_check(&spec->rule, contributions, err) : SHOAL_OK;
  if (status == SHOAL_OK && contributions > 0 && shoal_rule_is_idle(&spec->rule, contributions, advice))
    fprintf(stderr, "shoal host: warning: %s\n", advice);
  return status;
}

static shoal_status check_training(const shoal_text *body, shoal_error *err) {
  shoal_spec spec;
  shoal_spec_fault fault;
  shoal_status status = shoal_spec_parse(&spec, body->bytes, body->length, &fault, err);
  if (status != SHOAL_OK) return status;
  status = check_rule(&spec, err);
  shoal_spec_release(&spec);
  return status;
}

static shoal_status check_search(const shoal_text *body, shoal_error *err) {
  shoal_search_spec spec;
  shoal_spec_fault fault;
  shoal_status status = shoal_search_spec_parse(&spec, body->bytes, body->length, &fault, err);
  if (status == SHOAL_OK) shoal_search_spec_release(&spec);
  return status;
}

/* What the server would say of it, before anything is sent there. */
static shoal_status check_job(const host_options *o, const char *name, const char *model, shoal_error *err) {
  shoal_text body;
  shoal_text_init(&body);
  write_job(o, name, model, o->is_agent ? "" : "data", &body);
  shoal_status status = body.failed    ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory")
                        : o->is_agent  ? shoal_host_agent_check(&o->agent, &body, err)
                        : o->is_search ? check_search(&body, err)
                                       : check_training(&body, err);
  shoal_text_release(&body);
  return status;
}

static shoal_status submit(const host_options *o, shoal_remote *api, const char *name, FILE *text,
                           cJSON **job, shoal_error *err) {
  char data[SHOAL_FILE_NAME_MAX] = "";
  bool sent = false;
  uint8_t *model = NULL;
  shoal_status status = o->detach ? SHOAL_OK : shoal_hosted_check_out(o->out, err);
  if (status == SHOAL_OK && !o->is_search && !o->is_agent) status = read_model(o->what, &model, err);
  if (status == SHOAL_OK) status = check_job(o, name, (char *)model, err);
  const shoal_upload_config upload = {.api = api,
                                      .data = o->is_search ? o->what : o->data,
                                      .target = o->target,
                                      .is_table = o->is_search,
                                      .test = o->search.test,
                                      .dialect = o->search.dialect,
                                      .name = o->data_name,
                                      .data_dir = o->data_dir,
                                      .model = o->is_search ? NULL : o->what,
                                      .text = text};
  if (status == SHOAL_OK && !o->is_agent) status = shoal_upload(&upload, data, &sent, err);
  if (status == SHOAL_OK) {
    shoal_text body;
    shoal_text_init(&body);
    write_job(o, name, (char *)model, data, &body);
    status = body.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory")
                         : shoal_remote_ask(api, "POST", "/jobs", body.bytes, job, err);
    shoal_text_release(&body);
    /* Without an answer there may be a job. */
    bool refused = status == SHOAL_INVALID || status == SHOAL_CONFLICT || status == SHOAL_LIMIT;
    if (refused && sent) shoal_upload_take_back(&upload, data);
  }
  free(model);
  if (status == SHOAL_OK && shoal_whole_at(*job, "id") == 0)
    status = shoal_fail(err, SHOAL_CORRUPT, "the server took the job, but does not say its number");
  return status;
}

static void tell_submitted(const host_options *o, const cJSON *job, FILE *text) {
  uint64_t id = shoal_whole_at(job, "id");
  if (o->json) shoal_remote_event("submitted", job);
  if (!text) return;
  char name[NAME_BYTES];
  fprintf(text, "job %" PRIu64 ", %s, is submitted\n", id, shoal_plain_at(job, "name", name, sizeof name));
  fflush(text);
}

/* Only who is invited works for a private job: how that is done. */
static void tell_invitations(const shoal_hosted *h) {
  if (!h->text) return;
  bool has_token = h->api->link.token[0] != 0;
  fprintf(
      h->text,
      "The job is private: only people whom you invite can work for it. Invite them on the page, under "
      "Access, or with\n"
      "  curl %s-d '{\"role\":\"volunteer\",\"name\":\"ann\",\"job\":%" PRIu64 "}' %s%s://%s/api/v1/tokens\n"
      "The answer contains the link to pass on%s\n",
      h->api->link.fingerprint[0] ? "-k " : "", h->job, has_token ? "-H 'Authorization: Bearer TOKEN' " : "",
      h->api->link.tls ? "https" : "http", h->api->link.address,
      has_token ? "; TOKEN is the part of your own link after t=, up to the next & or the end" : "");
  fflush(h->text);
}

/* ---- the command ---- */

static bool has_begun_or_ended(const cJSON *job) {
  const char *state = shoal_text_at(job, "state");
  const cJSON *progress = cJSON_GetObjectItemCaseSensitive(job, "progress");
  const cJSON *search = cJSON_GetObjectItemCaseSensitive(job, "search");
  const cJSON *agent = cJSON_GetObjectItemCaseSensitive(job, "agent");
  if (strcmp(state, "running") == 0)
    return shoal_whole_at(progress, "step") > 0 || shoal_whole_at(search, "units") > 0 ||
           shoal_whole_at(agent, "steps") > 0;
  return strcmp(state, "waiting") != 0;
}

/* Some jobs fail as soon as somebody works for them: who does not wait is told that, too. */
static shoal_status look_at_start(const shoal_hosted *h, shoal_error *err) {
  char path[64], reason[200];
  bool settled = false;
  shoal_status status = SHOAL_OK;
  snprintf(path, sizeof path, "/jobs/%" PRIu64, h->job);
  for (double until = shoal_clock_seconds() + LOOK_S; !settled && shoal_clock_seconds() < until;) {
    cJSON *job;
    shoal_clock_sleep(LOOK_EVERY_S);
    /* The job is submitted: that it cannot be looked at now is no failure of this command. */
    if (shoal_remote_ask(h->api, "GET", path, NULL, &job, NULL) != SHOAL_OK) return SHOAL_OK;
    settled = has_begun_or_ended(job);
    if (strcmp(shoal_text_at(job, "state"), "failed") == 0)
      status = shoal_fail(err, SHOAL_INVALID, "job %" PRIu64 " failed: %s", h->job,
                          shoal_plain_at(job, "reason", reason, sizeof reason));
    cJSON_Delete(job);
  }
  return status;
}

static shoal_status submit_and_watch(const host_options *o, shoal_remote *api, FILE *text, int *exit_status,
                                     shoal_error *err) {
  char name[NAME_BYTES];
  cJSON *job = NULL;
  name_after(o->is_agent ? o->agent.said.env : o->what, name);
  shoal_status status = submit(o, api, o->name ? o->name : name, text, &job, err);
  if (status == SHOAL_OK) {
    tell_submitted(o, job, text);
    const shoal_hosted hosted = {.api = api,
                                 .options = &o->api,
                                 .command = "host",
                                 .job = shoal_whole_at(job, "id"),
                                 .out = o->out,
                                 .text = text,
                                 .json = o->json};
    if (o->is_private) tell_invitations(&hosted);
    if (!o->detach)
      status = shoal_hosted_watch(&hosted, exit_status, err);
    else if ((status = look_at_start(&hosted, err)) == SHOAL_OK)
      shoal_hosted_tell_commands(&hosted);
  }
  cJSON_Delete(job);
  return status;
}

static int run(int argc, char **argv) {
  host_options o = {.search.test_share = -1, .api.patient = true};
  shoal_remote api = {0};
  shoal_error err;
  int exit_status = SHOAL_EXIT_OK;
  bool parsed = parse(&o, argc, argv, &exit_status);
  shoal_status status = parsed ? check(&o, &err) : SHOAL_OK;
  if (parsed && status == SHOAL_OK) status = shoal_remote_open(&api, &o.api, shoal_stop_flag(), &err);
  shoal_link_wipe(argc, argv, o.api.server);
  if (!parsed) return exit_status;
  bool good = status == SHOAL_OK;
  if (good) shoal_stop_catch();
  if (good) status = submit_and_watch(&o, &api, o.quiet || o.json ? NULL : stdout, &exit_status, &err);
  shoal_host_search_release(&o.search);
  shoal_remote_close(&api);
  if (!good) return shoal_cli_misused("host", &err);
  if (status == SHOAL_STOPPED) return shoal_cli_stopped("host");
  if (status != SHOAL_OK) shoal_remote_blame_flags(&err);
  if (status == SHOAL_INVALID && strncmp(err.text, "--", 2) == 0) return shoal_cli_misused("host", &err);
  if (status != SHOAL_OK) return shoal_cli_failed("host", &err);
  return shoal_cli_finish("host", exit_status);
}

const shoal_command shoal_command_host = {
    "host", "have a network or an agent trained, or searched for, by the volunteers of a server", run};
