/* networks.c: see networks.h. */
#include "cli/networks.h"

#include <string.h>

#include "base/file.h"

static const struct {
  const char *name, *text;
} networks[] = {
    {"lenet5", "input 1x28x28\nconv 20 5x5 tanh\npool max 2x2\nconv 50 5x5 tanh\npool max 2x2\n"
               "dense 500 tanh\ndense 10\nloss cross-entropy\noptimizer sgd rate 0.025\nbatch 512\n"},
    {"mlp",
     "input 784\ndense 100 sigmoid\ndense 10\nloss cross-entropy\noptimizer sgd rate 0.5\nbatch 100\n"},
    {"lstm-ptb", "input tokens 30 carry\nembed 10000 200\nlstm 200 layers 2\ndense 10000\n"
                 "loss cross-entropy\noptimizer sgd rate 0.05\nbatch 20\n"},
};
enum { NETWORKS_COUNT = sizeof networks / sizeof networks[0] };

shoal_status shoal_network_named(shoal_model **out, const char *name, shoal_error *err) {
  for (int i = 0; i < NETWORKS_COUNT; i++) {
    if (strcmp(name, networks[i].name) == 0)
      return shoal_model_parse(out, name, networks[i].text, strlen(networks[i].text), err);
  }
  if (strpbrk(name, "./") == NULL && !shoal_file_exists(name))
    return shoal_fail(err, SHOAL_NOT_FOUND,
                      "no network is called '%s': there are lenet5, mlp and lstm-ptb, or give a model's file",
                      name);
  return shoal_model_load(out, name, err);
}
