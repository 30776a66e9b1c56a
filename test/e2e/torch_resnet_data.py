# What: the data of torch_resnet_test.sh: a dozen JPEG files in four classes as an image folder, the same bytes in the same
#       order as TFRecord files, a few more to test on, and folders of one picture each, on which a run shows its pixels.
# Usage: torch_resnet_data.py FOLDER_OF_PICTURES (works in the current folder)
# Needs: Python alone
import pathlib
import shutil
import struct
import sys

# Colour and gray, CMYK of two kinds, baseline, progressive and arithmetic coding, every kind of chroma; larger and smaller
# than 224x224. In byte order of class and name, which is the order of an image folder.
TRAIN = {
    "hopper": ["pillow_hopper.jpg", "pillow_hopper_gray.jpg"],
    "logo": ["pillow_pil_sample_cmyk.jpg", "tv_rgb_pytorch.jpg"],
    "other": ["ljt_testimgari.jpg", "tv_bad_huffman.jpg"],
    "video": ["go_video-001.221212.jpeg", "go_video-001.progressive.jpeg"],
}
TEST = {
    "hopper": ["pillow_hopper_orientation_3.jpg"],
    "logo": ["tv_cmyk_pytorch.jpg"],
    "other": ["ljt_testorig.jpg"],
    "video": ["go_video-001.q50.422.jpeg", "go_video-005.gray.jpeg"],
}


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def record(picture, label):
    bytes_feature = field(1, field(1, picture))  # Feature.bytes_list = 1, Feature.int64_list = 3
    label_feature = field(3, field(1, varint(label)))
    features = b"".join(field(1, field(1, name) + field(2, feature))
                        for name, feature in ((b"image/encoded", bytes_feature), (b"image/class/label", label_feature)))
    example = field(1, features)
    length = struct.pack("<Q", len(example))
    return length + struct.pack("<I", masked_crc(length)) + example + struct.pack("<I", masked_crc(example))


def main(pictures):
    for split, classes in (("train", TRAIN), ("test", TEST)):
        records = []
        for label, (name, files) in enumerate(classes.items()):
            folder = pathlib.Path(split, name)
            folder.mkdir(parents=True)
            for file in files:
                shutil.copy(pictures / file, folder / file)
                # A run of two classes of this picture: a label must be there, and the second one's is never read.
                for side in "ab":
                    one = pathlib.Path("pixels", f"{split}-{len(records):02}", side)
                    one.mkdir(parents=True)
                    shutil.copy(pictures / file, one / file)
                records.append(record((pictures / file).read_bytes(), label))
        pathlib.Path("records").mkdir(exist_ok=True)
        half = (len(records) + 1) // 2
        for i, part in enumerate((records[:half], records[half:])):
            pathlib.Path(f"records/{split}-{i:05}-of-00002").write_bytes(b"".join(part))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
