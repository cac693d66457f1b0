/* live.h: what happens, told at once to those who watch: streams of server-sent events.
 *
 * A watcher follows the whole server or one job, for as long as the token that it came with is good. What
 * changes often is gathered, and told a few times a second.
 *
 * Ownership: create, then destroy. Threads: the net's. */
#ifndef SHOAL_SERVER_LIVE_H
#define SHOAL_SERVER_LIVE_H

#include "base/text.h"
#include "server/access.h"
#include "wire/net.h"

typedef struct shoal_live shoal_live;

enum { SHOAL_LIVE_WATCHERS_MAX = 512 };

shoal_status shoal_live_create(shoal_live **out, shoal_error *err);
void shoal_live_destroy(shoal_live *live);

/* A stream that was opened watches a job, 0 for the server. False: there are too many. */
bool shoal_live_join(shoal_live *live, uint64_t request, uint64_t job, const shoal_caller *caller);
void shoal_live_leave(shoal_live *live, uint64_t request);
/* A token is good no more: its streams end. */
void shoal_live_close_token(shoal_live *live, shoal_net *net, uint64_t token);
bool shoal_live_watched(const shoal_live *live, uint64_t job);
/* An event for all who watch the job (0: the server); data is one line of JSON. */
void shoal_live_send(shoal_live *live, shoal_net *net, uint64_t job, const char *event,
                     const shoal_text *data);
/* To those who watch the server and are admins. */
void shoal_live_tell_admins(shoal_live *live, shoal_net *net, const char *event, const shoal_text *data);
/* To one watcher. */
void shoal_live_greet(shoal_net *net, uint64_t request, const char *event, const shoal_text *data);
/* Comments that keep connections open; streams whose token has expired end. now: monotonic; wall: wall
 * time. */
void shoal_live_tick(shoal_live *live, shoal_net *net, double now, double wall);

/* A set of numbers that changed, each once, in the order of coming. */
typedef struct shoal_changes {
  uint64_t *ids;
  size_t count, capacity;
} shoal_changes;
void shoal_changes_add(shoal_changes *changes, uint64_t id);
void shoal_changes_remove(shoal_changes *changes, uint64_t id);
void shoal_changes_release(shoal_changes *changes);

#endif
