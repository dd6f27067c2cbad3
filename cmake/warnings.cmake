# Every target of ours: lull_warnings(target).
function(lull_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror)
endfunction()
