/* fabric_mpi.c: finds the module that speaks MPI and loads it. See fabric.h.
 *
 * MPI's libraries take longer to load than a small network to train, and most machines have none. So
 * the program is not linked with them; the module (mpi/module.c) is, and stays loaded: a library that
 * has been told to finish cannot be started again in the same process. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cluster/fabric.h"

static const char MODULE_FILE[] = "shoal-mpi.so";

/* The module's path: in the folder of the program. */
static shoal_status find_module(char path[PATH_MAX], shoal_error *err) {
  ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
  if (length < 0)
    return shoal_fail(err, SHOAL_IO, "cannot find out where this program is: /proc/self/exe: %s",
                      strerror(errno));
  while (length > 0 && path[length - 1] != '/') length--;
  if ((size_t)length + sizeof MODULE_FILE > PATH_MAX)
    return shoal_fail(err, SHOAL_IO, "the path of the folder of this program is too long");
  memcpy(path + length, MODULE_FILE, sizeof MODULE_FILE);
  if (access(path, F_OK) != 0)
    return shoal_fail(err, SHOAL_NOT_FOUND,
                      "this program was built without MPI (there is no %s); install the Debian packages "
                      "openmpi-bin and libopenmpi-dev, and build again",
                      path);
  return SHOAL_OK;
}

shoal_status shoal_fabric_open_mpi(shoal_fabric *out, shoal_error *err) {
  char path[PATH_MAX];
  shoal_status status = find_module(path, err);
  if (status != SHOAL_OK) return status;
  /* Open MPI loads parts of its own that look for its symbols among the global ones. */
  void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL)
    return shoal_fail(err, SHOAL_UNSUPPORTED,
                      "%s; MPI runs where the Debian packages openmpi-bin and libopenmpi-dev are installed",
                      dlerror());
  const shoal_fabric_module *module = dlsym(library, SHOAL_FABRIC_MODULE);
  if (module == NULL || module->version != SHOAL_FABRIC_VERSION)
    return shoal_fail(err, SHOAL_UNSUPPORTED,
                      "%s belongs to another version of this program; build both again", path);
  return module->open(out, err);
}
