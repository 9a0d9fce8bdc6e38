# Runs PROGRAM with ARGUMENTS (a text with blanks between) and keeps what it prints in the file OUT.
separate_arguments(words UNIX_COMMAND "${ARGUMENTS}")
execute_process(COMMAND ${PROGRAM} ${words} OUTPUT_FILE ${OUT} COMMAND_ERROR_IS_FATAL ANY)
