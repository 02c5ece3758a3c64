# What Doxygen sees in the place of our comments (sed -E), line by line, so that its line numbers are ours.
# A formula, set in by two behind an empty line, is shown as it is written.
s#^( *///)   ([^ ])#\1     \2#
# The source is a paragraph of its own, not the end of the parameter before it.
s#^( *///) Sources?: #\1 @source #
# The holder of a module.
s#^TORCH_MODULE\((\w+)\);#/** Makes and holds a \1Impl, as LibTorch's holders do. */ &#
# One comment behind two fields is about both.
s#^( +)(std::\w+<[^;=]*>|[A-Za-z][A-Za-z_0-9:]*) (\w+)( = [^,;(]+)?, (\w+)( = [^,;(]+)?; +///< (.*)$#\1\2 \3\4; /**< \7 */ \2 \5\6; /**< \7 */#
