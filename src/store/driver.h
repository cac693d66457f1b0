/* driver.h: what a database must be able to do to stand behind db.h. See there for what each means. */
#ifndef SHOAL_STORE_DRIVER_H
#define SHOAL_STORE_DRIVER_H

#include "store/db.h"

typedef struct shoal_db_driver {
  const char *kind;
  void (*close)(shoal_db *db);
  const char *(*label)(const shoal_db *db);
  shoal_status (*claim)(shoal_db *db, shoal_error *err);
  shoal_status (*mend)(shoal_db *db, shoal_error *err);
  shoal_status (*begin)(shoal_db *db, shoal_db_mode mode, shoal_error *err);
  shoal_status (*commit)(shoal_db *db, shoal_error *err);
  void (*rollback)(shoal_db *db);
  shoal_status (*script)(shoal_db *db, const char *sql, shoal_error *err);
  shoal_status (*start)(shoal_db *db, const char *sql, const shoal_db_value *values, size_t count,
                        shoal_error *err);
  shoal_status (*step)(shoal_db *db, bool *row, shoal_error *err);
  void (*end)(shoal_db *db);
  uint64_t (*changed)(shoal_db *db); /* rows, by the last statement */
  int64_t (*get_integer)(shoal_db *db, int column);
  double (*get_real)(shoal_db *db, int column);
  const char *(*get_text)(shoal_db *db, int column);
} shoal_db_driver;

/* Every connection begins with this. */
struct shoal_db {
  const shoal_db_driver *driver;
};

enum { SHOAL_DB_STATEMENTS_MAX = 64, SHOAL_DB_VALUES_MAX = 16 };

shoal_status shoal_sqlite_open(shoal_db **out, const char *path, shoal_error *err);
/* SHOAL_UNSUPPORTED where the program was built without libpq. */
shoal_status shoal_postgres_open(shoal_db **out, const char *url, shoal_error *err);

#endif
