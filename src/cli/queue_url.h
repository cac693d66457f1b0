/* queue_url.h: a broker's URL on the command line, amqp://USER:PASSWORD@HOST:PORT/VHOST, whose password
 * nobody else should see.
 *
 * Ownership: take, then free. Threads: any. */
#ifndef SHOAL_CLI_QUEUE_URL_H
#define SHOAL_CLI_QUEUE_URL_H

#include <stdbool.h>
#include <stddef.h>

bool shoal_queue_url_is(const char *text); /* whether it begins like one */

/* A copy of the URL, which lies in one of the words, as a word or as the end of --queue=URL; what stands
 * before its host is overwritten there, so that nobody reads it in the list of processes. NULL: no memory. */
char *shoal_queue_url_take(const char *url, int argc, char **argv);
void shoal_queue_url_free(char *url); /* NULL is fine */

/* The same without user and password: "amqp://HOST:PORT/VHOST". */
void shoal_queue_url_plain(const char *url, char *out, size_t size);
/* The same for a command to copy: "amqp://USER:PASSWORD@HOST:PORT/VHOST", with that word for the password. */
void shoal_queue_url_masked(const char *url, char *out, size_t size);

#endif
