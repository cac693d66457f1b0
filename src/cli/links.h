/* links.h: machines with slow links, made of network namespaces on this machine.
 *
 *   this process --- switch (a bridge) ---[ R ]--- machine 0
 *                                      ---[ R ]--- machine 1 ...
 *
 * Every machine is a namespace with one link to the switch, which lets R bits a second through each
 * way (tc's token bucket). This process sits on the switch itself, without a limit. Needs root, and
 * the programs ip and tc.
 *
 * Open first removes what a run that was killed has left.
 *
 * Ownership: open, then close, which takes everything down again. Threads: one caller. */
#ifndef SHOAL_CLI_LINKS_H
#define SHOAL_CLI_LINKS_H

#include <stdint.h>

#include "base/status.h"

enum { SHOAL_LINKS_MAX = 512, SHOAL_LINKS_TEXT_MAX = 64 };

typedef struct shoal_links shoal_links;

/* A piece of text by value, as in human.h. */
typedef struct shoal_links_text {
  char text[SHOAL_LINKS_TEXT_MAX];
} shoal_links_text;

shoal_status shoal_links_open(shoal_links **out, uint32_t machines, double mbit, shoal_error *err);
void shoal_links_close(shoal_links *links); /* NULL is fine */

shoal_links_text shoal_links_here(const shoal_links *links);                      /* 10.70.0.1 */
shoal_links_text shoal_links_address(const shoal_links *links, uint32_t machine); /* 10.70.1.7 */
shoal_links_text shoal_links_network(const shoal_links *links, uint32_t machine); /* /run/netns/shoal-... */

#endif
