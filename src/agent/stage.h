/* stage.h: the environments of a stream, which can be carried to another machine even where their states
 * cannot.
 *
 * Environments whose states are bytes are a vector (vector.h), and so are their bytes. Those that own more
 * than that are carried as what they have been through: the seed of the episode and its actions so far; who
 * loads them plays these again, from where it stands itself if that is on the way. Here every episode begins
 * with a seed of its own. Those that are bridged, or whose episodes have no limit, cannot be carried.
 *
 * Ownership: create, then destroy. Threads: one at a time. */
#ifndef SHOAL_AGENT_STAGE_H
#define SHOAL_AGENT_STAGE_H

#include "agent/vector.h"

typedef struct shoal_stage shoal_stage;

shoal_status shoal_stage_create(shoal_stage **out, const shoal_env_kind *kind, uint32_t count,
                                shoal_error *err);
void shoal_stage_destroy(shoal_stage *stage);

/* As vector.h has them. */
void shoal_stage_reset(shoal_stage *stage, uint64_t seed);
void shoal_stage_step(shoal_stage *stage, const float *actions, float *rewards, uint8_t *ends);
shoal_status shoal_stage_check(const shoal_stage *stage, shoal_error *err);
const float *shoal_stage_observations(const shoal_stage *stage);
const float *shoal_stage_last(const shoal_stage *stage, uint32_t index);

/* Bytes that save would write now; 0: they cannot be carried. */
size_t shoal_stage_bytes(const shoal_stage *stage);
void shoal_stage_save(const shoal_stage *stage, void *bytes);
/* False: not what save writes for this kind and count; where the environments are then is open. Nothing in
 * it is trusted. */
bool shoal_stage_load(shoal_stage *stage, const void *bytes, size_t length);

#endif
