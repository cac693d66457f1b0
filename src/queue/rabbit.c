/* rabbit.c: see rabbit.h.
 *
 * Frames are read one by one without waiting, so that a broker which stops in the middle of a message holds
 * up nobody, and a message's length is known before there is memory for it. Questions wait for their
 * answers; what else comes meanwhile librabbitmq keeps for the next shoal_rabbit_next. */
#include "queue/rabbit.h"

#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#include <inttypes.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/text.h"

enum { RECEIVES = 1, SENDS = 2, ASKS = 3 }; /* channels */
enum { CHANNELS_MAX = 8, FRAME_BYTES = 128 << 10, SIGN_OF_LIFE_S = 15, CONSUMER_MAX = 16, ARGUMENTS_MAX = 5 };
enum { PERSISTENT = 2 };
static const struct timeval AT_ONCE = {0}, CONNECT_TIME = {.tv_sec = 5}, ANSWER_TIME = {.tv_sec = 15},
                            GOODBYE_TIME = {.tv_sec = 2};
static const char URL_FORM[] =
    "amqp://USER:PASSWORD@HOST:PORT/VHOST (or amqps:// for TLS), with %40 for @, %3A "
    "for : and %2F for / in a name or password";

/* The message of which parts have come. */
typedef struct half {
  bool begun, headed;
  shoal_rabbit_event event; /* length: of what is there */
  uint64_t length;          /* of all */
  bool oversized;
} half;

struct shoal_rabbit {
  amqp_connection_state_t connection;
  char *url; /* where the parts of `info` lie */
  struct amqp_connection_info info;
  char where[300]; /* for errors */
  uint64_t sent;
  half half;
  bool lost;
  char why[640];
};

/* ---- errors ---- */

static shoal_status lose(shoal_rabbit *r, const char *why) {
  if (!r->lost) snprintf(r->why, sizeof r->why, "%s: %s", r->where, why);
  r->lost = true;
  return SHOAL_IO;
}

static shoal_status lose_by(shoal_rabbit *r, int library_error) {
  if (library_error == AMQP_STATUS_CONNECTION_CLOSED || library_error == AMQP_STATUS_SOCKET_CLOSED)
    return lose(r, "the broker closed the connection");
  return lose(r, amqp_error_string2(library_error));
}

/* What the broker says, as one line for people. */
static void said(amqp_bytes_t text, char *out, size_t size) {
  shoal_text_plain(out, size, text.bytes, text.len);
}

static shoal_status lose_by_close(shoal_rabbit *r, amqp_bytes_t text) {
  char line[256], why[300];
  said(text, line, sizeof line);
  snprintf(why, sizeof why, "the broker closes the connection: %s", line);
  return lose(r, why);
}

/* The broker's word on a connection or channel that it closes. */
static bool closing(amqp_rpc_reply_t reply, int *code, amqp_bytes_t *text) {
  if (reply.reply_type != AMQP_RESPONSE_SERVER_EXCEPTION) return false;
  if (reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const amqp_connection_close_t *close = reply.reply.decoded;
    *code = close->reply_code;
    *text = close->reply_text;
    return true;
  }
  if (reply.reply.id != AMQP_CHANNEL_CLOSE_METHOD) return false;
  const amqp_channel_close_t *close = reply.reply.decoded;
  *code = close->reply_code;
  *text = close->reply_text;
  return true;
}

static shoal_status meaning_of(int code) {
  if (code == AMQP_NOT_FOUND) return SHOAL_NOT_FOUND;
  if (code == AMQP_PRECONDITION_FAILED || code == AMQP_RESOURCE_LOCKED) return SHOAL_CONFLICT;
  return SHOAL_INVALID;
}

/* The channel on which a question was refused, for the next one. */
static void reopen(shoal_rabbit *r, amqp_channel_t channel) {
  amqp_channel_close_ok_t ok = {0};
  int result = amqp_send_method(r->connection, channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
  if (result != AMQP_STATUS_OK) {
    lose_by(r, result);
    return;
  }
  amqp_channel_open(r->connection, channel);
  amqp_rpc_reply_t reply = amqp_get_rpc_reply(r->connection);
  if (reply.reply_type != AMQP_RESPONSE_NORMAL) lose(r, "the broker opens no channel");
}

/* What became of the question that was just asked. */
static shoal_status answer(shoal_rabbit *r, amqp_channel_t channel, const char *name, shoal_error *err) {
  amqp_rpc_reply_t reply = amqp_get_rpc_reply(r->connection);
  amqp_bytes_t text;
  char line[256];
  int code;
  if (reply.reply_type == AMQP_RESPONSE_NORMAL) return SHOAL_OK;
  if (!closing(reply, &code, &text)) {
    lose_by(r, reply.library_error);
  } else if (reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD || channel != ASKS) {
    lose_by_close(r, text);
  } else {
    said(text, line, sizeof line);
    reopen(r, channel);
    return shoal_fail(err, meaning_of(code), "%s: queue %s: %s", r->where, name, line);
  }
  return shoal_fail(err, SHOAL_IO, "%s", r->why);
}

static shoal_status gone_before(const shoal_rabbit *r, shoal_error *err) {
  return shoal_fail(err, SHOAL_IO, "%s", r->why);
}

/* ---- connecting ---- */

static shoal_status read_url(shoal_rabbit *r, const char *url, shoal_error *err) {
  r->url = strdup(url);
  if (r->url == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a connection");
  amqp_default_connection_info(&r->info);
  if (amqp_parse_url(r->url, &r->info) != AMQP_STATUS_OK || r->info.host[0] == 0 || r->info.port <= 0 ||
      r->info.port > 65535)
    return shoal_fail(err, SHOAL_INVALID, "the queue's URL is not of the form %s", URL_FORM);
  if (r->info.vhost[0] == 0) r->info.vhost = "/"; /* who writes a slash at the end means no other */
  char host[256];
  shoal_text_plain(host, sizeof host, r->info.host, strlen(r->info.host));
  snprintf(r->where, sizeof r->where, "RabbitMQ at %s:%d", host, r->info.port);
  return SHOAL_OK;
}

static shoal_status trust(shoal_rabbit *r, amqp_socket_t *socket, const char *ca_file, shoal_error *err) {
  amqp_ssl_socket_set_verify_peer(socket, 1);
  amqp_ssl_socket_set_verify_hostname(socket, 1);
  amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST);
  if (ca_file != NULL && amqp_ssl_socket_set_cacert(socket, ca_file) != AMQP_STATUS_OK)
    return shoal_fail(err, SHOAL_INVALID, "%s: cannot be read, or has no certificate in PEM", ca_file);
  if (ca_file == NULL && SSL_CTX_set_default_verify_paths(amqp_ssl_socket_get_context(socket)) != 1)
    return shoal_fail(err, SHOAL_IO, "%s: this machine has no list of trusted certificates", r->where);
  return SHOAL_OK;
}

static shoal_status unreachable(const shoal_rabbit *r, int error, shoal_error *err) {
  const char *why = amqp_error_string2(error);
  if (error == AMQP_STATUS_HOSTNAME_RESOLUTION_FAILED) why = "there is no host of that name";
  if (error == AMQP_STATUS_SOCKET_ERROR) why = "cannot connect: is the broker running there?";
  if (error == AMQP_STATUS_TIMEOUT) why = "it does not answer";
  if (error == AMQP_STATUS_SSL_PEER_VERIFY_FAILED)
    why = "nobody who is trusted vouches for its certificate; name the PEM file of who does";
  if (error == AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED) why = "its certificate is for another host";
  if (error == AMQP_STATUS_SSL_CONNECTION_FAILED) why = "it does not speak TLS on that port";
  return shoal_fail(err, SHOAL_IO, "%s: %s", r->where, why);
}

static shoal_status dial(shoal_rabbit *r, const char *ca_file, shoal_error *err) {
  if (r->info.ssl) amqp_set_initialize_ssl_library(0); /* OpenSSL does that by itself */
  amqp_socket_t *socket =
      r->info.ssl ? amqp_ssl_socket_new(r->connection) : amqp_tcp_socket_new(r->connection);
  if (socket == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a connection");
  if (r->info.ssl) {
    shoal_status status = trust(r, socket, ca_file, err);
    if (status != SHOAL_OK) return status;
  }
  int result = amqp_socket_open_noblock(socket, r->info.host, r->info.port, &CONNECT_TIME);
  if (result != AMQP_STATUS_OK) return unreachable(r, result, err);
  /* A machine that vanished must not hold up who sends to it; where this does not work nothing is lost. */
  unsigned gone_ms = 2 * SIGN_OF_LIFE_S * 1000;
  setsockopt(amqp_get_sockfd(r->connection), IPPROTO_TCP, TCP_USER_TIMEOUT, &gone_ms, sizeof gone_ms);
  return SHOAL_OK;
}

static amqp_table_entry_t yes(const char *key) {
  return (amqp_table_entry_t){.key = amqp_cstring_bytes(key),
                              .value = {.kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1}};
}

/* Who did not let us in, and what to do about it. */
static shoal_status refusal(const shoal_rabbit *r, amqp_rpc_reply_t reply, shoal_error *err) {
  char line[256], user[128], vhost[128];
  amqp_bytes_t text;
  int code;
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION && reply.library_error == AMQP_STATUS_TIMEOUT)
    return unreachable(r, reply.library_error, err);
  if (!closing(reply, &code, &text))
    return shoal_fail(err, SHOAL_IO, "%s: it does not answer as a broker does%s", r->where,
                      r->info.ssl ? "" : "; is that its port for amqp://, without TLS?");
  said(text, line, sizeof line);
  shoal_text_plain(user, sizeof user, r->info.user, strlen(r->info.user));
  shoal_text_plain(vhost, sizeof vhost, r->info.vhost, strlen(r->info.vhost));
  if (code == AMQP_ACCESS_REFUSED)
    return shoal_fail(err, SHOAL_INVALID, "%s: it refuses the user '%s' with this password", r->where, user);
  if (code == AMQP_NOT_ALLOWED)
    return shoal_fail(err, SHOAL_INVALID, "%s: it refuses the user '%s' the virtual host '%s': %s", r->where,
                      user, vhost, line);
  return shoal_fail(err, SHOAL_IO, "%s: it refuses the connection: %s", r->where, line);
}

static shoal_status log_in(shoal_rabbit *r, const char *name, shoal_error *err) {
  amqp_table_entry_t can[] = {yes("publisher_confirms"), yes("basic.nack"), yes("consumer_cancel_notify"),
                              yes("connection.blocked")};
  amqp_table_entry_t properties[] = {
      {.key = amqp_cstring_bytes("connection_name"),
       .value = {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes(name)}},
      {.key = amqp_cstring_bytes("capabilities"),
       .value = {.kind = AMQP_FIELD_KIND_TABLE,
                 .value.table = {.num_entries = sizeof can / sizeof *can, .entries = can}}}};
  const amqp_table_t table = {.num_entries = sizeof properties / sizeof *properties, .entries = properties};
  amqp_rpc_reply_t reply =
      amqp_login_with_properties(r->connection, r->info.vhost, CHANNELS_MAX, FRAME_BYTES, SIGN_OF_LIFE_S,
                                 &table, AMQP_SASL_METHOD_PLAIN, r->info.user, r->info.password);
  return reply.reply_type == AMQP_RESPONSE_NORMAL ? SHOAL_OK : refusal(r, reply, err);
}

static shoal_status open_channels(shoal_rabbit *r, shoal_error *err) {
  static const amqp_channel_t channels[] = {RECEIVES, SENDS, ASKS};
  for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
    amqp_channel_open(r->connection, channels[i]);
    shoal_status status = answer(r, RECEIVES, "", err);
    if (status != SHOAL_OK) return status;
  }
  amqp_confirm_select(r->connection, SENDS);
  return answer(r, SENDS, "", err);
}

static void release(shoal_rabbit *r) {
  free(r->half.event.bytes);
  if (r->connection != NULL) amqp_destroy_connection(r->connection);
  if (r->url != NULL) explicit_bzero(r->url, strlen(r->url));
  free(r->url);
  free(r);
}

shoal_status shoal_rabbit_connect(shoal_rabbit **out, const shoal_rabbit_place *place, shoal_error *err) {
  *out = NULL;
  shoal_rabbit *r = calloc(1, sizeof *r);
  if (r == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a connection");
  shoal_status status = read_url(r, place->url, err);
  if (status == SHOAL_OK) {
    r->connection = amqp_new_connection();
    if (r->connection == NULL) status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a connection");
  }
  if (status == SHOAL_OK) {
    amqp_set_handshake_timeout(r->connection, &CONNECT_TIME);
    amqp_set_rpc_timeout(r->connection, &ANSWER_TIME);
    status = dial(r, place->ca_file, err);
  }
  if (status == SHOAL_OK) status = log_in(r, place->name, err);
  if (status == SHOAL_OK) status = open_channels(r, err);
  if (status != SHOAL_OK) {
    release(r);
    return status;
  }
  *out = r;
  return SHOAL_OK;
}

void shoal_rabbit_disconnect(shoal_rabbit *rabbit) {
  if (rabbit == NULL) return;
  if (!rabbit->lost) {
    amqp_set_rpc_timeout(rabbit->connection, &GOODBYE_TIME);
    amqp_connection_close(rabbit->connection, AMQP_REPLY_SUCCESS);
  }
  release(rabbit);
}

const char *shoal_rabbit_lost(const shoal_rabbit *rabbit) { return rabbit->lost ? rabbit->why : NULL; }

int shoal_rabbit_socket(const shoal_rabbit *rabbit) { return amqp_get_sockfd(rabbit->connection); }

/* ---- questions ---- */

static void add_number(amqp_table_t *table, const char *key, uint64_t value) {
  if (value == 0) return;
  table->entries[table->num_entries++] = (amqp_table_entry_t){
      .key = amqp_cstring_bytes(key),
      .value = {.kind = AMQP_FIELD_KIND_I64, .value.i64 = value > INT64_MAX ? INT64_MAX : (int64_t)value}};
}

static uint64_t milliseconds(double seconds) { return (uint64_t)ceil(seconds * 1000); }

shoal_status shoal_rabbit_declare(shoal_rabbit *rabbit, const shoal_queue_spec *spec, shoal_error *err) {
  if (rabbit->lost) return gone_before(rabbit, err);
  amqp_table_entry_t entries[ARGUMENTS_MAX];
  amqp_table_t arguments = {.entries = entries};
  add_number(&arguments, "x-max-length", spec->length_max);
  add_number(&arguments, "x-max-length-bytes", spec->bytes_max);
  add_number(&arguments, "x-message-ttl", milliseconds(spec->message_s));
  add_number(&arguments, "x-expires", milliseconds(spec->unused_s));
  if (spec->full == SHOAL_QUEUE_REFUSES && (spec->length_max > 0 || spec->bytes_max > 0))
    entries[arguments.num_entries++] = (amqp_table_entry_t){
        .key = amqp_cstring_bytes("x-overflow"),
        .value = {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes("reject-publish")}};
  amqp_queue_declare(rabbit->connection, ASKS, amqp_cstring_bytes(spec->name), 0, 1, 0, 0, arguments);
  return answer(rabbit, ASKS, spec->name, err);
}

shoal_status shoal_rabbit_delete(shoal_rabbit *rabbit, const char *name, shoal_error *err) {
  if (rabbit->lost) return gone_before(rabbit, err);
  amqp_queue_delete(rabbit->connection, ASKS, amqp_cstring_bytes(name), 0, 0);
  return answer(rabbit, ASKS, name, err);
}

shoal_status shoal_rabbit_count(shoal_rabbit *rabbit, const char *name, uint64_t *messages,
                                uint64_t *receivers, shoal_error *err) {
  *messages = *receivers = 0;
  if (rabbit->lost) return gone_before(rabbit, err);
  const amqp_queue_declare_ok_t *ok =
      amqp_queue_declare(rabbit->connection, ASKS, amqp_cstring_bytes(name), 1, 0, 0, 0, amqp_empty_table);
  shoal_status status = answer(rabbit, ASKS, name, err);
  if (status == SHOAL_OK && ok != NULL) {
    *messages = ok->message_count;
    *receivers = ok->consumer_count;
  }
  return status;
}

/* "c7": receiver 7. */
static amqp_bytes_t consumer_of(uint32_t number, char out[CONSUMER_MAX]) {
  snprintf(out, CONSUMER_MAX, "c%" PRIu32, number);
  return amqp_cstring_bytes(out);
}

static uint32_t number_of(amqp_bytes_t consumer) {
  const char *text = consumer.bytes;
  uint64_t number;
  if (consumer.len < 2 || text[0] != 'c' || !shoal_read_u64(text + 1, consumer.len - 1, &number)) return 0;
  return number <= UINT32_MAX ? (uint32_t)number : 0;
}

shoal_status shoal_rabbit_receive(shoal_rabbit *rabbit, const char *name, uint32_t number, uint32_t prefetch,
                                  shoal_error *err) {
  char consumer[CONSUMER_MAX];
  if (rabbit->lost) return gone_before(rabbit, err);
  amqp_basic_qos(rabbit->connection, RECEIVES, 0, (uint16_t)prefetch, 0);
  shoal_status status = answer(rabbit, RECEIVES, name, err);
  if (status != SHOAL_OK) return status;
  amqp_basic_consume(rabbit->connection, RECEIVES, amqp_cstring_bytes(name), consumer_of(number, consumer), 0,
                     0, 0, amqp_empty_table);
  return answer(rabbit, RECEIVES, name, err);
}

shoal_status shoal_rabbit_receive_end(shoal_rabbit *rabbit, uint32_t number, shoal_error *err) {
  char consumer[CONSUMER_MAX];
  if (rabbit->lost) return gone_before(rabbit, err);
  amqp_basic_cancel(rabbit->connection, RECEIVES, consumer_of(number, consumer));
  return answer(rabbit, RECEIVES, "", err);
}

/* ---- what needs no answer ---- */

shoal_status shoal_rabbit_send(shoal_rabbit *rabbit, const char *name, const void *bytes, size_t length,
                               uint64_t *tag) {
  static const amqp_basic_properties_t properties = {._flags = AMQP_BASIC_DELIVERY_MODE_FLAG,
                                                     .delivery_mode = PERSISTENT};
  if (rabbit->lost) return SHOAL_IO;
  const amqp_bytes_t body = {.len = length, .bytes = (void *)bytes};
  int result = amqp_basic_publish(rabbit->connection, SENDS, amqp_empty_bytes, amqp_cstring_bytes(name), 1, 0,
                                  &properties, body);
  if (result != AMQP_STATUS_OK) return lose_by(rabbit, result);
  *tag = ++rabbit->sent; /* the broker counts along */
  return SHOAL_OK;
}

shoal_status shoal_rabbit_acknowledge(shoal_rabbit *rabbit, uint64_t ticket) {
  if (rabbit->lost) return SHOAL_IO;
  int result = amqp_basic_ack(rabbit->connection, RECEIVES, ticket, 0);
  return result == AMQP_STATUS_OK ? SHOAL_OK : lose_by(rabbit, result);
}

/* ---- what comes ---- */

static void begin_message(shoal_rabbit *r, const amqp_basic_deliver_t *deliver) {
  if (r->half.begun) {
    lose(r, "it sent a message in the middle of another");
    return;
  }
  r->half = (half){.begun = true,
                   .event = {.kind = SHOAL_RABBIT_DELIVERED,
                             .number = number_of(deliver->consumer_tag),
                             .ticket = deliver->delivery_tag,
                             .again = deliver->redelivered != 0}};
}

static void head_message(shoal_rabbit *r, uint64_t length) {
  half *h = &r->half;
  if (!h->begun || h->headed) {
    lose(r, "it sent a header that belongs to no message");
    return;
  }
  h->headed = true;
  h->length = length;
  h->oversized = length > SHOAL_QUEUE_MESSAGE_BYTES_MAX;
  if (h->oversized) return;
  h->event.bytes = malloc(length > 0 ? length : 1);
  if (h->event.bytes == NULL) lose(r, "out of memory for a message");
}

static void add_to_message(shoal_rabbit *r, amqp_bytes_t part) {
  half *h = &r->half;
  if (!h->headed || part.len > h->length - h->event.length) {
    lose(r, "it sent more than a message has");
    return;
  }
  if (!h->oversized && part.len > 0) memcpy((char *)h->event.bytes + h->event.length, part.bytes, part.len);
  h->event.length += part.len;
}

/* True: the message is whole. */
static bool end_message(shoal_rabbit *r, shoal_rabbit_event *out) {
  half *h = &r->half;
  if (r->lost || !h->headed || h->event.length < h->length) return false;
  *out = h->event;
  if (h->oversized) {
    out->kind = SHOAL_RABBIT_OVERSIZED;
    int result = amqp_basic_reject(r->connection, RECEIVES, h->event.ticket, 0);
    if (result != AMQP_STATUS_OK) lose_by(r, result);
  }
  *h = (half){0};
  return true;
}

static bool tell(shoal_rabbit_event *out, shoal_rabbit_event event) {
  *out = event;
  return true;
}

/* True: it is something to tell. */
static bool take_method(shoal_rabbit *r, const amqp_frame_t *frame, shoal_rabbit_event *out) {
  const void *decoded = frame->payload.method.decoded;
  switch (frame->payload.method.id) {
  case AMQP_BASIC_DELIVER_METHOD: begin_message(r, decoded); return false;
  case AMQP_BASIC_ACK_METHOD: {
    const amqp_basic_ack_t *ack = decoded;
    return tell(out, (shoal_rabbit_event){.kind = SHOAL_RABBIT_CONFIRMED,
                                          .tag = ack->delivery_tag,
                                          .and_before = ack->multiple != 0});
  }
  case AMQP_BASIC_NACK_METHOD: {
    const amqp_basic_nack_t *nack = decoded;
    return tell(out, (shoal_rabbit_event){.kind = SHOAL_RABBIT_REFUSED,
                                          .tag = nack->delivery_tag,
                                          .and_before = nack->multiple != 0});
  }
  case AMQP_BASIC_CANCEL_METHOD: {
    const amqp_basic_cancel_t *cancel = decoded;
    return tell(out,
                (shoal_rabbit_event){.kind = SHOAL_RABBIT_GONE, .number = number_of(cancel->consumer_tag)});
  }
  case AMQP_BASIC_RETURN_METHOD: return tell(out, (shoal_rabbit_event){.kind = SHOAL_RABBIT_RETURNED});
  case AMQP_CONNECTION_BLOCKED_METHOD: return tell(out, (shoal_rabbit_event){.kind = SHOAL_RABBIT_BLOCKED});
  case AMQP_CONNECTION_UNBLOCKED_METHOD:
    return tell(out, (shoal_rabbit_event){.kind = SHOAL_RABBIT_UNBLOCKED});
  case AMQP_CHANNEL_CLOSE_METHOD:
    lose_by_close(r, ((const amqp_channel_close_t *)decoded)->reply_text);
    return false;
  case AMQP_CONNECTION_CLOSE_METHOD:
    lose_by_close(r, ((const amqp_connection_close_t *)decoded)->reply_text);
    return false;
  default: return false;
  }
}

/* The rest of a returned message comes on the channel that sends: nobody reads it. */
static bool take_frame(shoal_rabbit *r, const amqp_frame_t *frame, shoal_rabbit_event *out) {
  if (frame->frame_type == AMQP_FRAME_METHOD) return take_method(r, frame, out);
  if (frame->channel != RECEIVES) return false;
  if (frame->frame_type == AMQP_FRAME_HEADER) head_message(r, frame->payload.properties.body_size);
  if (frame->frame_type == AMQP_FRAME_BODY) add_to_message(r, frame->payload.body_fragment);
  return end_message(r, out);
}

bool shoal_rabbit_next(shoal_rabbit *rabbit, shoal_rabbit_event *out) {
  bool is_told = false;
  while (!rabbit->lost && !is_told) {
    amqp_frame_t frame;
    int result = amqp_simple_wait_frame_noblock(rabbit->connection, &frame, &AT_ONCE);
    if (result == AMQP_STATUS_TIMEOUT) break;
    if (result != AMQP_STATUS_OK)
      lose_by(rabbit, result);
    else
      is_told = take_frame(rabbit, &frame, out);
  }
  amqp_maybe_release_buffers(rabbit->connection);
  return is_told;
}
