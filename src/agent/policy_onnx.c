/* policy_onnx.c: a policy as an ONNX file; see policy.h. */
#include "agent/policy.h"
#include "nn/graph.h"
#include "nn/onnx.h"

/* The first outputs of a row. */
static const char *first_of(shoal_onnx_file *file, const char *outputs, int64_t count) {
  const int64_t from = 0, axis = 1;
  return shoal_onnx_emit(file, "Slice", outputs, shoal_onnx_ints(file, 1, &from),
                         shoal_onnx_ints(file, 1, &count), shoal_onnx_ints(file, 1, &axis), NULL);
}

static const char *scale(shoal_onnx_file *file, const shoal_policy *policy, const char *seen) {
  const shoal_policy_state *state = shoal_policy_state_of((shoal_policy *)policy);
  uint32_t width = shoal_policy_spec_of(policy)->kind->observation;
  if (state->seen == 0) return seen;
  const char *apart = shoal_onnx_emit(file, "Sub", seen, shoal_onnx_floats(file, width, state->mean), NULL);
  const char *scaled =
      shoal_onnx_emit(file, "Mul", apart, shoal_onnx_floats(file, width, state->scale), NULL);
  return shoal_onnx_emit(file, "Clip", scaled, shoal_onnx_real(file, -SHOAL_SEEN_MAX),
                         shoal_onnx_real(file, SHOAL_SEEN_MAX), NULL);
}

/* The best of the choices; a number each, without an axis of its own. */
static void choose(shoal_onnx_file *file, const shoal_env_kind *kind, const char *outputs) {
  const char *choices = first_of(file, outputs, kind->choices);
  shoal_onnx_attribute_int(file, "axis", 1);
  shoal_onnx_attribute_int(file, "keepdims", 0);
  shoal_onnx_node(file, "ArgMax", &choices, 1, "action");
  shoal_onnx_output(file, "action", "action", SHOAL_ONNX_INT64, 0, NULL);
}

static void act(shoal_onnx_file *file, const shoal_policy_spec *spec, const char *outputs) {
  const shoal_env_kind *kind = spec->kind;
  const int64_t width = kind->action_width;
  const char *action = first_of(file, outputs, width);
  if (spec->head == SHOAL_HEAD_SQUASHED) {
    float half = (kind->action_high - kind->action_low) / 2, middle = kind->action_low + half;
    action = shoal_onnx_emit(file, "Tanh", action, NULL);
    action = shoal_onnx_emit(file, "Mul", action, shoal_onnx_real(file, half), NULL);
    action = shoal_onnx_emit(file, "Add", action, shoal_onnx_real(file, middle), NULL);
  }
  shoal_onnx_output(file, "action", action, SHOAL_ONNX_FLOAT, 1, &width);
}

shoal_status shoal_policy_onnx(const shoal_policy *policy, const char *path, shoal_error *err) {
  const shoal_policy_spec *spec = shoal_policy_spec_of(policy);
  const shoal_policy_state *state = shoal_policy_state_of((shoal_policy *)policy);
  const shoal_graph *graph = shoal_policy_graph(policy);
  const int64_t observation = spec->kind->observation;
  if (shoal_policy_remembers(policy))
    return shoal_fail(err, SHOAL_UNSUPPORTED,
                      "the agent has a recurrent layer, and its memory has no place in an ONNX file; its "
                      "weights can be read as safetensors");
  shoal_onnx_file file;
  shoal_onnx_file_init(&file);
  file.scope = "policy";
  const char *seen = shoal_onnx_input(&file, "observation", SHOAL_ONNX_FLOAT, 1, &observation);
  const char *scaled = scale(&file, policy, seen);
  const char *outputs = shoal_onnx_graph(&file, "", graph, state->weights, scaled);
  if (spec->kind->choices > 0)
    choose(&file, spec->kind, outputs);
  else
    act(&file, spec, outputs);
  shoal_onnx_meta(&file, "shoal.agent.env", spec->kind->name);
  shoal_status status = shoal_onnx_file_write(&file, path, err);
  shoal_onnx_file_release(&file);
  return status;
}
