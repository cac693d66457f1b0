# Fetches the packages of WEB/package-lock.json into WEB/node_modules, unless they are there. Several
# builds may come here at once: one fetches, the others wait.
#
#   cmake -DNPM=npm -DWEB=FOLDER -P install.cmake
file(LOCK ${WEB}/node_modules.lock TIMEOUT 600)

file(SHA256 ${WEB}/package-lock.json wanted)
set(note ${WEB}/node_modules/.fetched)
set(there "")
if(EXISTS ${note})
  file(READ ${note} there)
endif()
if(there STREQUAL wanted)
  return()
endif()

execute_process(COMMAND ${NPM} ci --no-audit --no-fund --ignore-scripts --silent
  WORKING_DIRECTORY ${WEB} RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "The packages could not be fetched by 'npm ci' in ${WEB}; "
    "it needs npm's registry, or a mirror of it that npm is told of.")
endif()
file(WRITE ${note} ${wanted})
