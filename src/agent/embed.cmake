# cmake -DFROM=FILE -DTO=FILE.c -DNAME=symbol -P embed.cmake: the file's bytes as an array of C.
file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${TO} "#include <stddef.h>\n\nextern const unsigned char ${NAME}[];\nextern const size_t ${NAME}_length;\n"
  "const unsigned char ${NAME}[] = {\n${bytes}};\nconst size_t ${NAME}_length = sizeof ${NAME};\n")
