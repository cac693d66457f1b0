/* A certificate is made once, kept, for nobody else's eyes, and good for its names. */
#include "nn/in_folder.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "base/file.h"
#include "wire/certificate.h"

static const char PATH[] = "tls/certificate.pem", KEY[] = "tls/key.pem";
static const char *const NAMES[] = {"shoal.example", "192.0.2.7", "2001:db8::7"};

static shoal_status ensure(shoal_error *err) {
  char *path, *key;
  shoal_status status = shoal_certificate_ensure("tls", NAMES, 3, &path, &key, err);
  assert_int_equal(status == SHOAL_OK, path != NULL && key != NULL);
  if (status == SHOAL_OK) {
    assert_string_equal(path, PATH);
    assert_string_equal(key, KEY);
  }
  free(path);
  free(key);
  return status;
}

static void must_ensure(char fingerprint[SHOAL_SHA256_HEX]) {
  shoal_error err;
  if (ensure(&err) != SHOAL_OK) fail_msg("%s", err.text);
  if (shoal_certificate_fingerprint(PATH, fingerprint, &err) != SHOAL_OK) fail_msg("%s", err.text);
}

static void put(const char *path, const char *text) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
  assert_int_equal(fclose(file), 0);
}

static void it_is_good_for_its_names(void **state) {
  (void)state;
  char fingerprint[SHOAL_SHA256_HEX];
  must_ensure(fingerprint);
  FILE *file = fopen(PATH, "rb");
  X509 *certificate = PEM_read_X509(file, NULL, NULL, NULL);
  fclose(file);
  file = fopen(KEY, "rb");
  EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
  fclose(file);
  assert_non_null(certificate);
  assert_int_equal(X509_check_private_key(certificate, key), 1);
  assert_int_equal(X509_verify(certificate, key), 1);
  assert_int_equal(EVP_PKEY_get_bits(key), 256);
  assert_int_equal(X509_check_host(certificate, "shoal.example", 0, 0, NULL), 1);
  assert_int_equal(X509_check_host(certificate, "evil.example", 0, 0, NULL), 0);
  assert_int_equal(X509_check_ip_asc(certificate, "192.0.2.7", 0), 1);
  assert_int_equal(X509_check_ip_asc(certificate, "2001:db8::7", 0), 1);
  assert_int_equal(X509_check_ip_asc(certificate, "192.0.2.8", 0), 0);
  assert_int_equal(X509_cmp_current_time(X509_get0_notBefore(certificate)), -1);
  char subject[64];
  X509_NAME_oneline(X509_get_subject_name(certificate), subject, sizeof subject);
  assert_string_equal(subject, "/CN=shoal server");
  double days;
  assert_int_equal(shoal_certificate_days_left(PATH, &days, NULL), SHOAL_OK);
  assert_true(days > 3649.9 && days <= 3650);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

static void which_names_it_is_for_is_told(void **state) {
  (void)state;
  char fingerprint[SHOAL_SHA256_HEX];
  must_ensure(fingerprint);
  static const char *const others[] = {"evil.example", "192.0.2.8", "2001:db8::8", "example", "*.example"};
  bool is_for;
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
    assert_int_equal(shoal_certificate_is_for(PATH, NAMES[i], &is_for, NULL), SHOAL_OK);
    assert_true(is_for);
  }
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    assert_int_equal(shoal_certificate_is_for(PATH, others[i], &is_for, NULL), SHOAL_OK);
    assert_false(is_for);
  }
  assert_int_equal(shoal_certificate_is_for("missing", NAMES[0], &is_for, NULL), SHOAL_NOT_FOUND);
}

/* The same number as OpenSSL's own program gives, if it is there. */
static void the_fingerprint_is_that_of_others(void **state) {
  (void)state;
  char fingerprint[SHOAL_SHA256_HEX], hash[SHOAL_SHA256_HEX] = "";
  must_ensure(fingerprint);
  assert_int_equal(strspn(fingerprint, "0123456789abcdef"), 64);
  FILE *pipe = popen("openssl pkey -in tls/key.pem -pubout -outform DER 2>/dev/null | sha256sum", "r");
  assert_non_null(pipe);
  assert_int_equal(fscanf(pipe, "%64s", hash), 1);
  pclose(pipe);
  static const char of_nothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  if (strcmp(hash, of_nothing) == 0) skip();
  assert_string_equal(fingerprint, hash);
}

static void it_is_made_once(void **state) {
  (void)state;
  char first[SHOAL_SHA256_HEX], second[SHOAL_SHA256_HEX];
  must_ensure(first);
  must_ensure(second);
  assert_string_equal(first, second);
  assert_int_equal(system("rm -r tls"), 0);
  must_ensure(second);
  assert_string_not_equal(first, second);
}

/* The certificate's file; the caller frees it. */
static char *read_pem(void) {
  uint8_t *bytes;
  size_t length;
  assert_int_equal(shoal_file_read(PATH, 1 << 20, false, &bytes, &length, NULL), SHOAL_OK);
  return (char *)bytes;
}

static void it_is_made_again_with_the_same_key_for_more_names_or_near_its_end(void **state) {
  (void)state;
  static const char *const more[] = {"shoal.example", "192.0.2.7", "2001:db8::7", "192.0.2.99"};
  char first[SHOAL_SHA256_HEX], second[SHOAL_SHA256_HEX], *path, *key;
  bool is_for = false;
  must_ensure(first);
  char *before = read_pem();
  assert_int_equal(shoal_certificate_ensure("tls", more, 4, &path, &key, NULL), SHOAL_OK);
  free(path);
  free(key);
  char *after = read_pem();
  assert_string_not_equal(before, after);
  assert_int_equal(shoal_certificate_is_for(PATH, "192.0.2.99", &is_for, NULL), SHOAL_OK);
  assert_true(is_for);
  must_ensure(second); /* fewer names are no reason */
  assert_string_equal(first, second);
  char *same = read_pem();
  assert_string_equal(after, same);
  free(before);
  free(after);
  free(same);
  static const struct {
    const char *subject;
    int days;
  } others[] = {{"/CN=shoal", 300}, {"/CN=shoal", 20}};
  for (int i = 0; i < 2; i++) {
    char command[256];
    double days;
    snprintf(command, sizeof command, "openssl req -x509 -key %s -out %s -days %d -subj %s 2> openssl.log",
             KEY, PATH, others[i].days, others[i].subject);
    assert_int_equal(system(command), 0);
    assert_int_equal(shoal_certificate_is_early(PATH), i == 0); /* the other one is made again anyway */
    assert_int_equal(shoal_certificate_ensure("tls", NULL, 0, &path, &key, NULL), SHOAL_OK);
    free(path);
    free(key);
    assert_int_equal(shoal_certificate_days_left(PATH, &days, NULL), SHOAL_OK);
    assert_true(i == 0 ? days < 301 : days > 3000);
    assert_int_equal(shoal_certificate_is_early(PATH), i == 0);
    assert_int_equal(shoal_certificate_fingerprint(PATH, second, NULL), SHOAL_OK);
    assert_string_equal(first, second);
  }
  assert_false(shoal_certificate_is_early("missing.pem"));
}

static void the_key_is_for_nobody_else(void **state) {
  (void)state;
  struct stat about;
  char fingerprint[SHOAL_SHA256_HEX];
  mode_t before = umask(0);
  must_ensure(fingerprint);
  assert_int_equal(stat(KEY, &about), 0);
  assert_int_equal(about.st_mode & 0777, 0600);
  assert_int_equal(chmod(KEY, 0644), 0);
  must_ensure(fingerprint);
  assert_int_equal(stat(KEY, &about), 0);
  assert_int_equal(about.st_mode & 0777, 0600);
  umask(before);
}

/* Killed after the key: it is used for the certificate. */
static void a_key_that_is_there_is_used(void **state) {
  (void)state;
  char fingerprint[SHOAL_SHA256_HEX];
  uint8_t *before, *after;
  size_t before_length, after_length;
  must_ensure(fingerprint);
  assert_int_equal(shoal_file_read(KEY, 1 << 20, false, &before, &before_length, NULL), SHOAL_OK);
  assert_int_equal(unlink(PATH), 0);
  must_ensure(fingerprint);
  assert_int_equal(shoal_file_read(KEY, 1 << 20, false, &after, &after_length, NULL), SHOAL_OK);
  assert_int_equal(before_length, after_length);
  assert_memory_equal(before, after, after_length);
  free(before);
  free(after);
}

static void what_does_not_belong_together_is_said(void **state) {
  (void)state;
  char fingerprint[SHOAL_SHA256_HEX];
  shoal_error err;
  must_ensure(fingerprint);
  assert_int_equal(rename(KEY, "key"), 0);
  assert_int_equal(ensure(&err), SHOAL_NOT_FOUND);
  assert_non_null(strstr(err.text, KEY));
  assert_int_equal(rename(PATH, "certificate"), 0);
  must_ensure(fingerprint);
  assert_int_equal(rename("key", KEY), 0);
  assert_int_equal(ensure(&err), SHOAL_CORRUPT);
  assert_non_null(strstr(err.text, "does not belong to the key"));
  put(KEY, "nonsense");
  assert_int_equal(ensure(&err), SHOAL_CORRUPT);
  assert_non_null(strstr(err.text, "tls/key.pem"));
  put(PATH, "nonsense");
  assert_int_equal(ensure(&err), SHOAL_CORRUPT);
  assert_non_null(strstr(err.text, "tls/certificate.pem: there is no certificate"));
}

/* A pem file cut short anywhere is an error or, when only the last line's end is missing, the same
 * certificate. */
static void a_file_that_was_cut_short_is_an_error(void **state) {
  (void)state;
  char fingerprint[SHOAL_SHA256_HEX], other[SHOAL_SHA256_HEX];
  uint8_t *bytes;
  size_t length;
  shoal_error err;
  double days;
  must_ensure(fingerprint);
  assert_int_equal(shoal_file_read(PATH, 1 << 20, false, &bytes, &length, NULL), SHOAL_OK);
  for (size_t cut = 0; cut < length; cut++) {
    char was = (char)bytes[cut];
    bytes[cut] = 0;
    put("cut.pem", (const char *)bytes);
    bytes[cut] = (uint8_t)was;
    if (shoal_certificate_fingerprint("cut.pem", other, &err) == SHOAL_OK) {
      assert_int_equal(cut, length - 1);
      assert_string_equal(other, fingerprint);
    } else {
      assert_int_equal(err.status, SHOAL_CORRUPT);
      assert_non_null(strstr(err.text, "cut.pem"));
      assert_int_equal(shoal_certificate_days_left("cut.pem", &days, &err), SHOAL_CORRUPT);
    }
  }
  free(bytes);
  assert_int_equal(shoal_certificate_fingerprint("missing.pem", other, &err), SHOAL_NOT_FOUND);
}

static void bad_names_are_refused(void **state) {
  (void)state;
  static const char *const names[] = {"", "a b", "a,DNS:evil.example", "a/b", "\xc3\xa4", "2001:zz::1"};
  shoal_error err;
  char *path, *key;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    assert_int_equal(shoal_certificate_ensure("tls", &names[i], 1, &path, &key, &err), SHOAL_INVALID);
  assert_false(shoal_file_exists("tls"));
  assert_int_equal(shoal_certificate_ensure("tls", NULL, 0, &path, &key, &err), SHOAL_OK);
  free(path);
  free(key);
}

static void a_disk_that_is_full_is_an_error(void **state) {
  (void)state;
  shoal_error err;
  char fingerprint[SHOAL_SHA256_HEX];
  limit_files(100);
  assert_int_equal(ensure(&err), SHOAL_IO);
  limit_files(300); /* enough for the key, not for the certificate */
  assert_int_equal(ensure(&err), SHOAL_IO);
  limit_files(0);
  assert_false(shoal_file_exists(PATH));
  must_ensure(fingerprint);
  assert_int_equal(system("test $(ls -A tls | wc -l) = 2"), 0); /* nothing is left over */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(it_is_good_for_its_names),
      IN_FOLDER(which_names_it_is_for_is_told),
      IN_FOLDER(the_fingerprint_is_that_of_others),
      IN_FOLDER(it_is_made_once),
      IN_FOLDER(it_is_made_again_with_the_same_key_for_more_names_or_near_its_end),
      IN_FOLDER(the_key_is_for_nobody_else),
      IN_FOLDER(a_key_that_is_there_is_used),
      IN_FOLDER(what_does_not_belong_together_is_said),
      IN_FOLDER(a_file_that_was_cut_short_is_an_error),
      IN_FOLDER(bad_names_are_refused),
      IN_FOLDER(a_disk_that_is_full_is_an_error),
  };
  return RUN_TESTS(tests);
}
