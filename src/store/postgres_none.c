/* postgres_none.c: in place of postgres.c where the program is built without libpq. */
#include "store/driver.h"

shoal_status shoal_postgres_open(shoal_db **out, const char *url, shoal_error *err) {
  (void)url;
  *out = NULL;
  return shoal_fail(
      err, SHOAL_UNSUPPORTED,
      "this shoal was built without PostgreSQL: build it again with libpq-dev installed, or name a file "
      "for SQLite");
}
