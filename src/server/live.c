/* live.c: see live.h. */
#include "server/live.h"

#include <stdlib.h>
#include <string.h>

#include "wire/http.h"

static const double COMMENT_S = 15, EXPIRY_S = 1;

typedef struct watcher {
  uint64_t request, job, token;
  shoal_role_level level;
  double expires; /* wall time; 0: never */
} watcher;

struct shoal_live {
  watcher watchers[SHOAL_LIVE_WATCHERS_MAX];
  size_t count;
  double next_comment, next_expiry;
};

shoal_status shoal_live_create(shoal_live **out, shoal_error *err) {
  *out = calloc(1, sizeof **out);
  return *out != NULL ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

void shoal_live_destroy(shoal_live *live) { free(live); }

bool shoal_live_join(shoal_live *live, uint64_t request, uint64_t job, const shoal_caller *caller) {
  if (live->count == SHOAL_LIVE_WATCHERS_MAX) return false;
  live->watchers[live->count++] = (watcher){request, job, caller->token, caller->level, caller->expires};
  return true;
}

void shoal_live_leave(shoal_live *live, uint64_t request) {
  for (size_t i = 0; i < live->count; i++)
    if (live->watchers[i].request == request) {
      live->watchers[i] = live->watchers[--live->count];
      return;
    }
}

/* Ends a stream; whoever it was hears no more of it. */
static void end(shoal_live *live, shoal_net *net, size_t place) {
  uint64_t request = live->watchers[place].request;
  live->watchers[place] = live->watchers[--live->count];
  shoal_http_end(net, request);
}

void shoal_live_close_token(shoal_live *live, shoal_net *net, uint64_t token) {
  for (size_t i = live->count; i-- > 0;)
    if (live->watchers[i].token == token) end(live, net, i);
}

bool shoal_live_watched(const shoal_live *live, uint64_t job) {
  for (size_t i = 0; i < live->count; i++)
    if (live->watchers[i].job == job) return true;
  return false;
}

static void write_event(shoal_text *out, const char *event, const shoal_text *data) {
  shoal_text_addf(out, "event: %s\ndata: ", event);
  shoal_text_add(out, data->bytes, data->length);
  shoal_text_add(out, "\n\n", 2);
}

static void send_to(shoal_live *live, shoal_net *net, uint64_t job, shoal_role_level least, const char *event,
                    const shoal_text *data) {
  shoal_text text = {0};
  write_event(&text, event, data);
  /* A push that closes a watcher does not tell so from inside (wire/http.h). */
  for (size_t i = 0; i < live->count && !text.failed; i++)
    if (live->watchers[i].job == job && live->watchers[i].level >= least)
      shoal_http_push(net, live->watchers[i].request, text.bytes, text.length);
  shoal_text_release(&text);
}

void shoal_live_send(shoal_live *live, shoal_net *net, uint64_t job, const char *event,
                     const shoal_text *data) {
  send_to(live, net, job, SHOAL_NOBODY, event, data);
}

void shoal_live_tell_admins(shoal_live *live, shoal_net *net, const char *event, const shoal_text *data) {
  send_to(live, net, 0, SHOAL_ADMIN, event, data);
}

void shoal_live_greet(shoal_net *net, uint64_t request, const char *event, const shoal_text *data) {
  shoal_text text = {0};
  write_event(&text, event, data);
  if (!text.failed) shoal_http_push(net, request, text.bytes, text.length);
  shoal_text_release(&text);
}

void shoal_live_tick(shoal_live *live, shoal_net *net, double now, double wall) {
  if (now >= live->next_expiry) {
    live->next_expiry = now + EXPIRY_S;
    for (size_t i = live->count; i-- > 0;)
      if (live->watchers[i].expires > 0 && wall >= live->watchers[i].expires) end(live, net, i);
  }
  if (now < live->next_comment) return;
  live->next_comment = now + COMMENT_S;
  for (size_t i = 0; i < live->count; i++) shoal_http_push(net, live->watchers[i].request, ":\n\n", 3);
}

/* ---- changes ---- */

void shoal_changes_add(shoal_changes *c, uint64_t id) {
  for (size_t i = 0; i < c->count; i++)
    if (c->ids[i] == id) return;
  if (c->count == c->capacity) {
    size_t capacity = c->capacity > 0 ? 2 * c->capacity : 64;
    uint64_t *grown = realloc(c->ids, capacity * sizeof *grown);
    if (grown == NULL) return; /* it is told with its next change */
    c->ids = grown;
    c->capacity = capacity;
  }
  c->ids[c->count++] = id;
}

void shoal_changes_remove(shoal_changes *c, uint64_t id) {
  for (size_t i = 0; i < c->count; i++)
    if (c->ids[i] == id) {
      memmove(c->ids + i, c->ids + i + 1, (--c->count - i) * sizeof *c->ids);
      return;
    }
}

void shoal_changes_release(shoal_changes *c) {
  free(c->ids);
  *c = (shoal_changes){0};
}
