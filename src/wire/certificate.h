/* certificate.h: a certificate that a server makes for itself, and what is to be known of any.
 *
 * Nobody vouches for such a certificate; a client compares the fingerprint of its key, which an invitation
 * carries (link.h). So the key is made once and kept, and the certificate is renewed with the same key
 * when it expires soon or lacks a name: invitations stay valid.
 *
 * Ownership: paths that come back are the caller's (malloc). Threads: any, on different folders. */
#ifndef SHOAL_WIRE_CERTIFICATE_H
#define SHOAL_WIRE_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/hash.h"
#include "base/status.h"

enum { SHOAL_CERTIFICATE_NAMES_MAX = 64 };

/* FOLDER/certificate.pem and FOLDER/key.pem (mode 0600): those that are there, if they belong together and
 * are for all of `names`, host names and IP addresses, for more than a month; else a new one: EC P-256, good
 * for ten years. The key is written first, so a process that is killed leaves none, the key, or both; a key that
 * is there is used. The folder is made where it is missing. */
shoal_status shoal_certificate_ensure(const char *folder, const char *const *names, size_t names_count,
                                      char **certificate_path, char **key_path, shoal_error *err);

/* Of the first certificate of a PEM file: the SHA-256 of its public key (SubjectPublicKeyInfo in DER), as 64
 * lower-case hexadecimal digits. */
shoal_status shoal_certificate_fingerprint(const char *path, char out[SHOAL_SHA256_HEX], shoal_error *err);
/* Returns true if an earlier version of Shoal made this certificate. Invitations of that version contain the
 * fingerprint of the certificate, so renewing it invalidates them. Returns false if the file cannot be read, or
 * if the certificate expires so soon that it must be renewed anyway. */
bool shoal_certificate_is_early(const char *path);
/* Whether it is for a host name or an address. */
shoal_status shoal_certificate_is_for(const char *path, const char *name, bool *out, shoal_error *err);
/* How many days it is still good for; negative when it is expired. */
shoal_status shoal_certificate_days_left(const char *path, double *out, shoal_error *err);

#endif
