/* certificate.c: see certificate.h. */
#include "wire/certificate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/secret.h"
#include "base/text.h"
#include "wire/tls.h"

enum { PEM_BYTES_MAX = 1 << 20, DAYS = 3650, LEAST_DAYS = 30, SERIAL_BYTES = 16, HOST_NAME_MAX_BYTES = 253 };
static const char NAME[] = "shoal server", EARLY_NAME[] = "shoal";

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

static shoal_status fail_openssl(const char *what, shoal_error *err) {
  char reason[160];
  ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
  ERR_clear_error();
  return shoal_fail(err, SHOAL_IO, "%s: %s", what, reason);
}

/* ---- reading ---- */

/* No pass phrase is asked for on a terminal. */
static int no_phrase(char *to, int size, int writing, void *self) {
  (void)to;
  (void)size;
  (void)writing;
  (void)self;
  return -1;
}

static shoal_status open_pem(const char *path, uint8_t **bytes, size_t *length, BIO **out, shoal_error *err) {
  *out = NULL;
  shoal_status status = shoal_file_read(path, PEM_BYTES_MAX, false, bytes, length, err);
  if (status != SHOAL_OK) return status;
  *out = BIO_new_mem_buf(*bytes, (int)*length);
  if (*out != NULL) return SHOAL_OK;
  free(*bytes);
  *bytes = NULL;
  return fail_memory(err);
}

static shoal_status read_certificate(const char *path, X509 **out, shoal_error *err) {
  uint8_t *bytes;
  size_t length;
  BIO *pem;
  *out = NULL;
  shoal_status status = open_pem(path, &bytes, &length, &pem, err);
  if (status != SHOAL_OK) return status;
  *out = PEM_read_bio_X509(pem, NULL, no_phrase, NULL);
  BIO_free(pem);
  free(bytes);
  ERR_clear_error();
  if (*out != NULL) return SHOAL_OK;
  return shoal_fail(err, SHOAL_CORRUPT, "%s: there is no certificate in it (-----BEGIN CERTIFICATE-----)",
                    path);
}

static shoal_status read_key(const char *path, EVP_PKEY **out, shoal_error *err) {
  uint8_t *bytes;
  size_t length;
  BIO *pem;
  *out = NULL;
  shoal_status status = open_pem(path, &bytes, &length, &pem, err);
  if (status != SHOAL_OK) return status;
  *out = PEM_read_bio_PrivateKey(pem, NULL, no_phrase, NULL);
  BIO_free(pem);
  OPENSSL_cleanse(bytes, length);
  free(bytes);
  ERR_clear_error();
  if (*out != NULL) return SHOAL_OK;
  return shoal_fail(err, SHOAL_CORRUPT, "%s: there is no key in it (-----BEGIN PRIVATE KEY-----)", path);
}

shoal_status shoal_certificate_fingerprint(const char *path, char out[SHOAL_SHA256_HEX], shoal_error *err) {
  X509 *certificate;
  uint8_t digest[SHOAL_SHA256_BYTES];
  unsigned length = 0;
  out[0] = 0;
  shoal_status status = read_certificate(path, &certificate, err);
  if (status != SHOAL_OK) return status;
  bool done = shoal_tls_digest_key(certificate, digest, &length);
  X509_free(certificate);
  if (!done) return fail_openssl(path, err);
  shoal_hex(digest, length, out);
  return SHOAL_OK;
}

static shoal_status days_left(const X509 *certificate, const char *path, double *out, shoal_error *err) {
  int days, seconds;
  if (!ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate))) {
    ERR_clear_error();
    return shoal_fail(err, SHOAL_CORRUPT, "%s: the end of its time cannot be read", path);
  }
  *out = days + seconds / 86400.0;
  return SHOAL_OK;
}

shoal_status shoal_certificate_days_left(const char *path, double *out, shoal_error *err) {
  X509 *certificate;
  *out = 0;
  shoal_status status = read_certificate(path, &certificate, err);
  if (status != SHOAL_OK) return status;
  status = days_left(certificate, path, out, err);
  X509_free(certificate);
  return status;
}

bool shoal_certificate_is_early(const char *path) {
  X509 *certificate;
  char name[sizeof EARLY_NAME + 1] = "";
  double days = 0;
  if (read_certificate(path, &certificate, NULL) != SHOAL_OK) return false;
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
  bool lasts = days_left(certificate, path, &days, NULL) == SHOAL_OK && days > LEAST_DAYS;
  X509_free(certificate);
  return lasts && strcmp(name, EARLY_NAME) == 0;
}

/* ---- writing ---- */

static shoal_status make_key(const char *path, EVP_PKEY **out, shoal_error *err) {
  *out = EVP_EC_gen("P-256");
  if (*out == NULL) return fail_openssl("a key cannot be made", err);
  BIO *pem = BIO_new(BIO_s_secmem());
  if (pem == NULL) pem = BIO_new(BIO_s_mem());
  char *bytes;
  shoal_writer *writer;
  shoal_status status = SHOAL_OK;
  if (pem == NULL || !PEM_write_bio_PrivateKey(pem, *out, NULL, NULL, 0, NULL, NULL))
    status = fail_openssl(path, err);
  if (status == SHOAL_OK) status = shoal_writer_create_secret(&writer, path, err);
  if (status == SHOAL_OK) {
    long length = BIO_get_mem_data(pem, &bytes);
    shoal_writer_add(writer, bytes, (size_t)length);
    status = shoal_writer_commit(writer, err);
  }
  BIO_free(pem);
  if (status != SHOAL_OK) {
    EVP_PKEY_free(*out);
    *out = NULL;
  }
  return status;
}

/* The key that is there, for nobody else to read from now on; or a new one. */
static shoal_status ensure_key(const char *path, EVP_PKEY **out, shoal_error *err) {
  *out = NULL;
  struct stat about;
  if (stat(path, &about) != 0 && errno == ENOENT) return make_key(path, out, err);
  if (stat(path, &about) != 0 || ((about.st_mode & 077) != 0 && chmod(path, 0600) != 0))
    return shoal_fail(err, SHOAL_IO, "%s: %s", path, strerror(errno));
  return read_key(path, out, err);
}

static bool is_host_name(const char *name) {
  static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_*";
  size_t length = strlen(name);
  return length > 0 && length <= HOST_NAME_MAX_BYTES && strspn(name, good) == length;
}

/* The name for the certificate: an address as bytes, a host name as text. NULL without memory. */
static GENERAL_NAME *general_name(const char *name) {
  uint8_t address[16];
  int length = inet_pton(AF_INET, name, address) == 1 ? 4 : inet_pton(AF_INET6, name, address) == 1 ? 16 : 0;
  GENERAL_NAME *out = GENERAL_NAME_new();
  ASN1_STRING *value = length > 0 ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
  bool set = value != NULL && (length > 0 ? ASN1_STRING_set(value, address, length)
                                          : ASN1_STRING_set(value, name, (int)strlen(name))) == 1;
  if (out == NULL || !set) {
    GENERAL_NAME_free(out);
    ASN1_STRING_free(value);
    return NULL;
  }
  GENERAL_NAME_set0_value(out, length > 0 ? GEN_IPADD : GEN_DNS, value);
  return out;
}

static shoal_status add_names(X509 *certificate, const char *const *names, size_t count, shoal_error *err) {
  GENERAL_NAMES *all = GENERAL_NAMES_new();
  bool good = all != NULL;
  for (size_t i = 0; i < count && good; i++) {
    GENERAL_NAME *name = general_name(names[i]);
    good = name != NULL && sk_GENERAL_NAME_push(all, name) > 0;
    if (!good) GENERAL_NAME_free(name);
  }
  good = good && (count == 0 || X509_add1_ext_i2d(certificate, NID_subject_alt_name, all, 0, 0) == 1);
  GENERAL_NAMES_free(all);
  return good ? SHOAL_OK : fail_openssl("the names of the certificate", err);
}

static bool is_for(const X509 *certificate, const char *name) {
  bool found = false;
  GENERAL_NAMES *all = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
  GENERAL_NAME *wanted = general_name(name);
  for (int i = 0; i < sk_GENERAL_NAME_num(all) && wanted != NULL && !found; i++)
    found = GENERAL_NAME_cmp(sk_GENERAL_NAME_value(all, i), wanted) == 0;
  GENERAL_NAME_free(wanted);
  GENERAL_NAMES_free(all);
  return found;
}

shoal_status shoal_certificate_is_for(const char *path, const char *name, bool *out, shoal_error *err) {
  X509 *certificate;
  *out = false;
  shoal_status status = read_certificate(path, &certificate, err);
  if (status != SHOAL_OK) return status;
  *out = is_for(certificate, name);
  X509_free(certificate);
  return SHOAL_OK;
}

/* For servers, and not to vouch for others. */
static bool add_limits(X509 *certificate) {
  static const struct {
    int id;
    const char *value;
  } limits[] = {{NID_basic_constraints, "critical,CA:FALSE"},
                {NID_key_usage, "critical,digitalSignature"},
                {NID_ext_key_usage, "serverAuth"}};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, limits[i].id, limits[i].value);
    bool added = extension != NULL && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    if (!added) return false;
  }
  return true;
}

static bool set_serial(X509 *certificate) {
  uint8_t bytes[SERIAL_BYTES];
  if (shoal_draw(bytes, sizeof bytes, NULL) != SHOAL_OK) return false;
  bytes[0] = (bytes[0] & 0x7f) | 0x40; /* neither negative nor shorter */
  BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
  bool set = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL;
  BN_free(number);
  return set;
}

/* A day before now, as clocks differ, to ten years on. */
static bool fill(X509 *certificate, EVP_PKEY *key) {
  X509_NAME *name = X509_get_subject_name(certificate);
  return X509_set_version(certificate, X509_VERSION_3) && set_serial(certificate) &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -86400L) != NULL &&
         X509_time_adj_ex(X509_getm_notAfter(certificate), DAYS, 0, NULL) != NULL &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)NAME, -1, -1, 0) &&
         X509_set_issuer_name(certificate, name) && X509_set_pubkey(certificate, key) &&
         add_limits(certificate);
}

static shoal_status write_certificate(const char *path, X509 *certificate, shoal_error *err) {
  BIO *pem = BIO_new(BIO_s_mem());
  char *bytes;
  shoal_status status = SHOAL_OK;
  if (pem == NULL || !PEM_write_bio_X509(pem, certificate)) status = fail_openssl(path, err);
  if (status == SHOAL_OK) {
    long length = BIO_get_mem_data(pem, &bytes);
    status = shoal_file_write(path, bytes, (size_t)length, err);
  }
  BIO_free(pem);
  return status;
}

static shoal_status make_certificate(const char *path, EVP_PKEY *key, const char *const *names, size_t count,
                                     shoal_error *err) {
  X509 *certificate = X509_new();
  if (certificate == NULL) return fail_memory(err);
  shoal_status status = fill(certificate, key) ? SHOAL_OK : fail_openssl("a certificate cannot be made", err);
  if (status == SHOAL_OK) status = add_names(certificate, names, count, err);
  if (status == SHOAL_OK && X509_sign(certificate, key, EVP_sha256()) == 0)
    status = fail_openssl("a certificate cannot be signed", err);
  if (status == SHOAL_OK) status = write_certificate(path, certificate, err);
  X509_free(certificate);
  return status;
}

/* ---- what is there, or new ones ---- */

static shoal_status check_names(const char *const *names, size_t count, shoal_error *err) {
  if (count > SHOAL_CERTIFICATE_NAMES_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "a certificate is for at most %d names", SHOAL_CERTIFICATE_NAMES_MAX);
  for (size_t i = 0; i < count; i++) {
    struct in6_addr six;
    if (!is_host_name(names[i]) && inet_pton(AF_INET6, names[i], &six) != 1)
      return shoal_fail(err, SHOAL_INVALID, "'%.80s' is neither a host name nor an address", names[i]);
  }
  return SHOAL_OK;
}

/* Whether the certificate that is there is still good. It must belong to the key. */
static shoal_status check_kept(const char *path, const char *key_path, const char *const *names, size_t count,
                               bool *good, shoal_error *err) {
  X509 *certificate;
  EVP_PKEY *key = NULL;
  double days = 0;
  *good = false;
  if (!shoal_file_exists(path)) return SHOAL_OK;
  if (!shoal_file_exists(key_path))
    return shoal_fail(
        err, SHOAL_NOT_FOUND,
        "%s: its key %s is missing; put it back, or remove the certificate to have a new one made", path,
        key_path);
  shoal_status status = read_certificate(path, &certificate, err);
  if (status != SHOAL_OK) return status;
  status = ensure_key(key_path, &key, err);
  if (status == SHOAL_OK) status = days_left(certificate, path, &days, err);
  if (status == SHOAL_OK && X509_check_private_key(certificate, key) != 1) {
    ERR_clear_error();
    status = shoal_fail(
        err, SHOAL_CORRUPT,
        "%s does not belong to the key %s; put the right one back, or remove both to have new ones made",
        path, key_path);
  }
  *good = status == SHOAL_OK && days > LEAST_DAYS;
  for (size_t i = 0; i < count && *good; i++) *good = is_for(certificate, names[i]);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return status;
}

static shoal_status ensure(const char *folder, const char *path, const char *key_path,
                           const char *const *names, size_t count, shoal_error *err) {
  bool good;
  shoal_status status = check_names(names, count, err);
  if (status == SHOAL_OK) status = shoal_make_folder(folder, err);
  if (status == SHOAL_OK) status = check_kept(path, key_path, names, count, &good, err);
  if (status != SHOAL_OK || good) return status;
  EVP_PKEY *key;
  status = ensure_key(key_path, &key, err);
  if (status == SHOAL_OK) status = make_certificate(path, key, names, count, err);
  EVP_PKEY_free(key);
  return status;
}

shoal_status shoal_certificate_ensure(const char *folder, const char *const *names, size_t names_count,
                                      char **certificate_path, char **key_path, shoal_error *err) {
  shoal_text path = {0}, key = {0};
  *certificate_path = *key_path = NULL;
  shoal_text_addf(&path, "%s/certificate.pem", folder);
  shoal_text_addf(&key, "%s/key.pem", folder);
  shoal_status status = path.failed || key.failed
                            ? fail_memory(err)
                            : ensure(folder, path.bytes, key.bytes, names, names_count, err);
  if (status == SHOAL_OK) {
    *certificate_path = path.bytes;
    *key_path = key.bytes;
    return SHOAL_OK;
  }
  shoal_text_release(&path);
  shoal_text_release(&key);
  return status;
}
