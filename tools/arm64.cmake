# arm64.cmake: what CMake needs to know to build for ARM64 on another machine. See tools/arm64,
# which sets SHOAL_ARM64_LIBRARIES to the folder that it unpacked the libraries into.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SHOAL_ARM64_LIBRARIES)

set(CMAKE_FIND_ROOT_PATH ${SHOAL_ARM64_LIBRARIES} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${SHOAL_ARM64_LIBRARIES}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${SHOAL_ARM64_LIBRARIES})

# Debian keeps the headers that differ between architectures apart.
set(CMAKE_C_FLAGS_INIT "-isystem ${SHOAL_ARM64_LIBRARIES}/usr/include/aarch64-linux-gnu")

# Libraries that libraries need.
set(folders ${SHOAL_ARM64_LIBRARIES}/usr/lib/aarch64-linux-gnu:${SHOAL_ARM64_LIBRARIES}/lib/aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${folders} -Wl,-rpath,${folders} -Wl,--disable-new-dtags")
