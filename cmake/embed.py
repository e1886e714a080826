"""Writes text files as C++ string views: embed.py NAMESPACE OUT FILE..."""
import os
import re
import sys

namespace, out, files = sys.argv[1], sys.argv[2], sys.argv[3:]
os.makedirs(os.path.dirname(out), exist_ok=True)

declarations, definitions = [], []
for path in files:
    name = re.sub(r"\W", "_", os.path.basename(path))
    data = open(path, "rb").read()
    # Byte lists rather than string literals: compilers bound the length of a literal.
    body = ",".join(str(byte if byte < 128 else byte - 256) for byte in data)
    declarations.append(f"extern const std::string_view {name};")
    definitions.append(
        f"static const char {name}_bytes[] = {{{body},0}};\n"
        f"const std::string_view {name}({name}_bytes, {len(data)});"
    )

with open(out + ".h", "w", encoding="utf-8") as header:
    header.write(
        "#pragma once\n#include <string_view>\n"
        f"namespace {namespace} {{\n" + "\n".join(declarations) + "\n}\n"
    )
with open(out + ".cpp", "w", encoding="utf-8") as source:
    source.write(
        f'#include "{os.path.basename(os.path.dirname(out))}/{os.path.basename(out)}.h"\n'
        f"namespace {namespace} {{\n" + "\n".join(definitions) + "\n}\n"
    )
