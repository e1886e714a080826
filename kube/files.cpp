#include "kube/files.h"

#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace loadline::kube {
namespace {

constexpr std::string_view kBase64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

Result<std::string> read_file(const std::string& path) {
  constexpr std::uintmax_t kLimit = 4UL * 1024 * 1024;
  std::error_code failure;
  const auto status = std::filesystem::status(path, failure);
  if (status.type() == std::filesystem::file_type::not_found)
    return Error::make(Error::Code::NotFound, path + ": no such file");
  if (status.type() == std::filesystem::file_type::directory)
    return Error::make(Error::Code::Invalid, path + ": is a folder");
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error::make(Error::Code::Forbidden, path + ": " + std::generic_category().message(errno));
  // Piece by piece: the size of a pipe is not known before its end.
  std::string text;
  std::array<char, 4096> piece{};
  do {
    file.read(piece.data(), piece.size());
    text.append(piece.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > kLimit) return Error::make(Error::Code::Invalid, path + ": larger than 4 MiB");
  } while (file);
  return text;
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

std::string resolve_path(const std::string& folder, const std::string& path) {
  if (path.empty() || std::filesystem::path(path).is_absolute()) return path;
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

Result<std::string> decode_base64(std::string_view text) {
  std::string packed;
  for (const char c : text) {
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') packed += c;
  }
  const std::size_t padding = packed.ends_with("==") ? 2 : packed.ends_with('=') ? 1 : 0;
  // EVP_DecodeBlock takes a '-' for an end of input, and padding for zero bytes wherever it stands.
  const std::string_view digits = std::string_view(packed).substr(0, packed.size() - padding);
  const bool base64 = packed.size() % 4 == 0 && digits.find_first_not_of(kBase64Digits) == std::string_view::npos;
  std::string out(packed.size() / 4 * 3, '\0');
  const int size =
      !base64 ? -1
              : EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                reinterpret_cast<const unsigned char*>(packed.data()), static_cast<int>(packed.size()));
  if (size < 0) return Error::make(Error::Code::Invalid, "not base64");
  out.resize(static_cast<std::size_t>(size) - padding);
  return out;
}

std::string encode_base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

}  // namespace loadline::kube
