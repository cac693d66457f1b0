/* libm_digest.h: what this machine's C library makes of sines, cosines and squares, in one number.
 *
 * The environments of classic control call the C library as the originals do, and its last bits are not the
 * same everywhere: one library rounds some values in a thousand otherwise with fused multiply-adds than
 * without. A rollout that was played with other bits is honest, and looks like a lie to who plays it again.
 * So machines compare this number before one plays what the other checks.
 *
 * Threads: any. Takes about a millisecond. */
#ifndef SHOAL_AGENT_LIBM_DIGEST_H
#define SHOAL_AGENT_LIBM_DIGEST_H

enum { SHOAL_LIBM_DIGEST_MAX = 17 };

/* As hexadecimal digits: equal where, as far as is tried, all bits are. */
void shoal_libm_digest(char out[SHOAL_LIBM_DIGEST_MAX]);

#endif
