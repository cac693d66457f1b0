/* rabbit_none.c: in place of rabbit.c where the program is built without librabbitmq. */
#include "base/assert.h"
#include "queue/rabbit.h"

shoal_status shoal_rabbit_connect(shoal_rabbit **out, const shoal_rabbit_place *place, shoal_error *err) {
  (void)place;
  *out = NULL;
  return shoal_fail(
      err, SHOAL_UNSUPPORTED,
      "this shoal was built without RabbitMQ: build it again with librabbitmq-dev installed, or do "
      "without a queue's URL");
}

/* There is never a connection, so nobody can get here. */

void shoal_rabbit_disconnect(shoal_rabbit *rabbit) { SHOAL_ASSERT(rabbit == NULL); }

const char *shoal_rabbit_lost(const shoal_rabbit *rabbit) {
  SHOAL_ASSERT(rabbit == NULL);
  return "there is no RabbitMQ";
}

int shoal_rabbit_socket(const shoal_rabbit *rabbit) {
  SHOAL_ASSERT(rabbit == NULL);
  return -1;
}

static shoal_status none(const shoal_rabbit *rabbit, shoal_error *err) {
  return shoal_fail(err, SHOAL_IO, "%s", shoal_rabbit_lost(rabbit));
}

shoal_status shoal_rabbit_declare(shoal_rabbit *rabbit, const shoal_queue_spec *spec, shoal_error *err) {
  (void)spec;
  return none(rabbit, err);
}

shoal_status shoal_rabbit_delete(shoal_rabbit *rabbit, const char *name, shoal_error *err) {
  (void)name;
  return none(rabbit, err);
}

shoal_status shoal_rabbit_count(shoal_rabbit *rabbit, const char *name, uint64_t *messages,
                                uint64_t *receivers, shoal_error *err) {
  (void)name;
  *messages = *receivers = 0;
  return none(rabbit, err);
}

shoal_status shoal_rabbit_receive(shoal_rabbit *rabbit, const char *name, uint32_t number, uint32_t prefetch,
                                  shoal_error *err) {
  (void)name;
  (void)number;
  (void)prefetch;
  return none(rabbit, err);
}

shoal_status shoal_rabbit_receive_end(shoal_rabbit *rabbit, uint32_t number, shoal_error *err) {
  (void)number;
  return none(rabbit, err);
}

shoal_status shoal_rabbit_send(shoal_rabbit *rabbit, const char *name, const void *bytes, size_t length,
                               uint64_t *tag) {
  (void)name;
  (void)bytes;
  (void)length;
  *tag = 0;
  return none(rabbit, NULL);
}

shoal_status shoal_rabbit_acknowledge(shoal_rabbit *rabbit, uint64_t ticket) {
  (void)ticket;
  return none(rabbit, NULL);
}

bool shoal_rabbit_next(shoal_rabbit *rabbit, shoal_rabbit_event *out) {
  SHOAL_ASSERT(rabbit == NULL);
  (void)out;
  return false;
}
