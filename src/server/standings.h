/* standings.h: who has earned trust on this server, and who is banned, over all jobs and restarts.
 *
 * Somebody is a token where there is one ("token 3"), else a name and an address ("anna at 10.0.0.7"): under
 * another name, or from elsewhere, one is a newcomer, whose every unit is computed again. The chiefs of
 * guarded jobs know people by a number, which the server's secret makes of that text: nobody can find another text
 * with the same number. What they learn of them is kept in the store,
 * told to jobs that start later, and a ban at once to all. Who is blamed by two others for wrong chunks is
 * doubted (trust.h) until the server is started again: liars may blame the honest, so that costs a few audits
 * more and nothing else.
 *
 * Ownership: open, then close; the store and the secret are borrowed. Threads: one. */
#ifndef SHOAL_SERVER_STANDINGS_H
#define SHOAL_SERVER_STANDINGS_H

#include "base/json.h"
#include "base/secret.h"
#include "proto/trust.h"
#include "store/store.h"

enum { SHOAL_STANDINGS_MAX = 4096, SHOAL_STANDING_REASON_MAX = 96 };

typedef struct shoal_standings shoal_standings;

/* Reads what the store has. */
shoal_status shoal_standings_open(shoal_standings **out, shoal_store *store, const shoal_secret *secret,
                                  shoal_error *err);
void shoal_standings_close(shoal_standings *standings);

/* Somebody says HELLO to a chief: its number there. token 0: it has none. */
uint64_t shoal_standings_meet(shoal_standings *standings, uint64_t token, const char *name,
                              const char *address);
/* Of somebody who was met; of others, that nothing is known. */
shoal_standing shoal_standings_get(const shoal_standings *standings, uint64_t who);
/* Whether this is somebody who is banned; nothing changes. */
bool shoal_standings_is_banned(const shoal_standings *standings, uint64_t token, const char *name,
                               const char *address);
/* All that is known, for a chief: plain values, until the next call of anything here. */
const shoal_standing *shoal_standings_all(const shoal_standings *standings, uint32_t *count);

/* What a chief has learnt of somebody: goes into the store; a ban, which is new when true comes back, into
 * the audit log too, with the reason, under the name that it had. */
bool shoal_standings_learn(shoal_standings *standings, const shoal_standing *standing, const char *name,
                           const char *reason, uint64_t job);

/* One more unit of somebody's has agreed: known at once. The store hears of it with the next flush, or at the
 * end: there may be hundreds a second. */
void shoal_standings_agreed(shoal_standings *standings, uint64_t who);
void shoal_standings_flush(shoal_standings *standings);

/* Somebody says that another sent it a wrong chunk. True: it is doubted now, and *out is what chiefs that run
 * are to be told. */
bool shoal_standings_blame(shoal_standings *standings, uint64_t who, uint64_t by, shoal_standing *out);

/* {"bans":[{"id","who","reason","job"|null,"time"}]} */
shoal_status shoal_standings_write_bans(shoal_standings *standings, shoal_json *json, shoal_error *err);
/* Lifts one, for `by`, who goes into the audit log: "token 1 (Ann)". *out is what chiefs that run are to be
 * told. SHOAL_NOT_FOUND: there is no such ban. */
shoal_status shoal_standings_lift(shoal_standings *standings, uint64_t id, const char *by,
                                  shoal_standing *out, shoal_error *err);

#endif
