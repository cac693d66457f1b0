/* swarm_hall.h: a server of one swarm and nothing else, to measure and to test how data travels.
 *
 * It gives noise (data/specimen.h) to whoever connects at the path /data; at another, one is refused with
 * 403.
 *
 * Ownership: create, then destroy; what the config names is borrowed until then. Threads: one. */
#ifndef SHOAL_SERVER_SWARM_HALL_H
#define SHOAL_SERVER_SWARM_HALL_H

#include "data/specimen.h"
#include "server/swarm.h"

typedef struct shoal_hall shoal_hall;

typedef struct shoal_hall_config {
  const shoal_specimen *specimen;
  const char *listen; /* "127.0.0.1:0" */
  uint32_t connections_max;
  const char *certificate, *key; /* or NULL */
  void *self;
  /* `by` says that `who` sent it something else. */
  void (*blamed)(void *self, const char *who, const char *by, uint32_t chunk);
} shoal_hall_config;

shoal_status shoal_hall_create(shoal_hall **out, const shoal_hall_config *config, shoal_error *err);
void shoal_hall_destroy(shoal_hall *hall);
uint16_t shoal_hall_port(const shoal_hall *hall);
/* Serves for so long at most. */
void shoal_hall_run(shoal_hall *hall, double seconds);
uint64_t shoal_hall_sent(const shoal_hall *hall); /* bytes, over all connections */
/* As shoal_swarms_write does. */
void shoal_hall_write(const shoal_hall *hall, shoal_json *json);

#endif
