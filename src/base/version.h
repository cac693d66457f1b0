/* version.h: which shoal this is. */
#ifndef SHOAL_BASE_VERSION_H
#define SHOAL_BASE_VERSION_H

#define SHOAL_VERSION "0.1.0"

#endif
