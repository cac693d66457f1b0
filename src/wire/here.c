/* here.c: see here.h. */
#include "wire/here.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

static bool read_four(const struct ifaddrs *a, shoal_here_address *out) {
  struct sockaddr_in four;
  memcpy(&four, a->ifa_addr, sizeof four);
  bool link_local = ntohl(four.sin_addr.s_addr) >> 16 == 0xa9fe; /* 169.254 */
  return !link_local && inet_ntop(AF_INET, &four.sin_addr, out->text, sizeof out->text) != NULL;
}

static bool read_six(const struct ifaddrs *a, shoal_here_address *out) {
  struct sockaddr_in6 six;
  memcpy(&six, a->ifa_addr, sizeof six);
  out->six = true;
  return !IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr) &&
         inet_ntop(AF_INET6, &six.sin6_addr, out->text, sizeof out->text) != NULL;
}

size_t shoal_here_addresses(shoal_here_address *out, size_t max) {
  struct ifaddrs *all = NULL;
  size_t count = 0;
  if (getifaddrs(&all) != 0) return 0;
  for (const struct ifaddrs *a = all; a != NULL && count < max; a = a->ifa_next) {
    bool usable = a->ifa_addr != NULL && (a->ifa_flags & IFF_UP) != 0 && (a->ifa_flags & IFF_LOOPBACK) == 0;
    shoal_here_address address = {0};
    if (!usable) continue;
    bool good = a->ifa_addr->sa_family == AF_INET    ? read_four(a, &address)
                : a->ifa_addr->sa_family == AF_INET6 ? read_six(a, &address)
                                                     : false;
    if (good) out[count++] = address;
  }
  freeifaddrs(all);
  return count;
}
