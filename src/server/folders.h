/* folders.h: texts for those who ask a server, without the folders of the machine that it runs on.
 *
 * Errors of files name them with their folder. Whoever runs the server reads that in its log; to everybody
 * else it says nothing, and is nobody's business.
 *
 * Threads: any. */
#ifndef SHOAL_SERVER_FOLDERS_H
#define SHOAL_SERVER_FOLDERS_H

/* Takes a folder out of a text wherever it is named: "FOLDER/wine.csv: ..." is "wine.csv: ...", and
 * "FOLDER: ..." is what stands behind it. */
void shoal_cut_folder(char *text, const char *folder);

/* Likewise the folder that a file lies in; levels is how many names are left of its path: with 2
 * "FOLDER/sets/wine/wine.csv" is "wine/wine.csv". */
void shoal_cut_path(char *text, const char *path, int levels);

#endif
