package org.apache.hadoop.hive.ql.exec;

import java.util.ArrayList;
import java.util.List;
import org.apache.hive.com.esotericsoftware.kryo.Kryo;
import org.apache.hive.com.esotericsoftware.kryo.Serializer;
import org.apache.hive.com.esotericsoftware.kryo.io.Input;
import org.apache.hive.com.esotericsoftware.kryo.io.Output;

/** In place of Hive's own, which looks for fields that lists have had up to Java 8: without it no plan is written. */
class SerializationUtilities$ArrayListSubListSerializer extends Serializer<List<?>> {
  @Override
  public List<?> read(Kryo kryo, Input input, Class<List<?>> type) {
    List<?> items = (List<?>) kryo.readClassAndObject(input);
    return items.subList(0, items.size());
  }

  @Override
  public void write(Kryo kryo, Output output, List<?> items) {
    kryo.writeClassAndObject(output, new ArrayList<>(items));
  }

  @Override
  public List<?> copy(Kryo kryo, List<?> items) {
    return new ArrayList<>(items).subList(0, items.size());
  }
}
